import { randomUUID } from 'node:crypto'
import { operatorKeyRecord } from '../accounts/sealed-records.ts'
import { open } from '../accounts/secret-box.ts'
import { type Api, applySettings, type Catalog, type OperatorSettings } from '../catalog/catalog.ts'
import type { Config, Secret } from '../config.ts'
import type { Db } from '../db/database.ts'
import type { UpstreamSettingsRow } from '../db/schema.ts'
import { listUpstreamSettings } from '../db/upstream-settings.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { type OperatorNotice, readNotice } from './operator-notice.ts'

/**
 * How often the version of the settings is read, milliseconds, so that a change applies everywhere
 * within a second.
 */
const LOOK_EVERY_MS = 400

/** After this time an announced change applies in every process, milliseconds. */
export const IN_FORCE_MS = 2 * LOOK_EVERY_MS

/** How often the settings are read even if the version has not changed, milliseconds. */
const READ_EVERY_MS = 30_000

/** Announces changed settings to every process. Call it after the change is committed. */
export async function announceSettings(redis: RedisConnection): Promise<void> {
  await redis.set(keys.settingsVersion, randomUUID())
}

export interface SettingsDeps {
  config: Config
  log: Log
  catalog: Catalog
  db: Db
  redis: RedisConnection
}

/**
 * Keeps a process's catalog equal to the stored settings. While Postgres or Redis is away, the last
 * settings are used.
 */
export class SettingsSync {
  readonly #deps: SettingsDeps
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #version: string | null | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #rows: ReadonlyMap<string, UpstreamSettingsRow> = new Map()
  #notice: OperatorNotice | undefined
  /** When the notice ends, milliseconds of the monotonic clock. */
  #noticeEndsAt = 0
  #current: Promise<void> | undefined

  constructor(deps: SettingsDeps) {
    this.#deps = deps
  }

  /** Reads the settings once if Postgres is available, and then keeps following them. */
  async open(): Promise<void> {
    await this.#look()
    this.#timer = setInterval(() => {
      this.#current ??= this.#look().finally(() => {
        this.#current = undefined
      })
    }, LOOK_EVERY_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#current
  }

  /** Calls `listener` after settings were read that may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /**
   * Reads the settings now, and the notice if Redis is available.
   *
   * @throws what the query or Redis throws
   */
  async read(): Promise<void> {
    const { db, catalog, redis } = this.#deps
    this.#rows = new Map((await listUpstreamSettings(db)).map((row) => [row.slug, row]))
    for (const api of catalog.known()) this.apply(api)
    this.#readAt = performance.now()
    for (const listener of this.#listeners) listener()
    if (redis.status !== 'ready') return
    const [notice, leftMs] = await Promise.all([readNotice(redis), redis.pttl(keys.operatorNotice)])
    this.#notice = notice
    this.#noticeEndsAt = performance.now() + leftMs
  }

  /** The present notice of the operator. */
  get notice(): OperatorNotice | undefined {
    return this.#noticeEndsAt > performance.now() ? this.#notice : undefined
  }

  /** Applies the last settings to an API. */
  apply(api: Api): void {
    const { config, log } = this.#deps
    const row = this.#rows.get(api.slug)
    applySettings(api, row ? decodeSettings(row, config.secrets.encryption, log) : {})
  }

  async #look(): Promise<void> {
    const { redis, log } = this.#deps
    try {
      // Without Redis, the settings are still read from time to time.
      const version = redis.status === 'ready' ? await redis.get(keys.settingsVersion) : (this.#version ?? null)
      if (version === this.#version && performance.now() - this.#readAt < READ_EVERY_MS) return
      await this.read()
      this.#version = version
    } catch (error) {
      log.debug({ err: error }, 'failed to read the settings of upstreams')
    }
  }
}

/**
 * Turns a row into settings. If its key cannot be decrypted, calls go without a key, because a
 * wrong key would be worse.
 */
function decodeSettings(row: UpstreamSettingsRow, secrets: Secret[], log: Log): OperatorSettings {
  const settings: OperatorSettings = {}
  if (row.enabled !== null) settings.enabled = row.enabled
  if (row.tier_required !== null) settings.tierRequired = row.tier_required
  if (row.caps !== null) settings.caps = row.caps
  if (row.paused_mode !== null) settings.pausedMode = row.paused_mode
  if (row.key_sealed !== null && row.key_secret_id !== null) {
    try {
      settings.key = open(secrets, operatorKeyRecord(row.slug), { secretId: row.key_secret_id, bytes: row.key_sealed })
    } catch (error) {
      settings.isKeyUnreadable = true
      log.error({ err: error, slug: row.slug }, 'failed to open an operator key')
    }
  }
  return settings
}
