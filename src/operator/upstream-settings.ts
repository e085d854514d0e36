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
 * How often the version is looked at, milliseconds: a change is in force everywhere within a
 * second.
 */
const LOOK_EVERY_MS = 400

/** After this long a change that was announced is in force in every process, milliseconds. */
export const IN_FORCE_MS = 2 * LOOK_EVERY_MS

/** How often the settings are read whether the version changed or not, milliseconds. */
const READ_EVERY_MS = 30_000

/** Tells every process that settings were changed. Call it after the change is committed. */
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
 * Keeps a process's catalog as the operators set it. What was read last holds while Postgres or
 * Redis is away.
 */
export class SettingsSync {
  readonly #deps: SettingsDeps
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #version: string | null | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #rows: ReadonlyMap<string, UpstreamSettingsRow> = new Map()
  #notice: OperatorNotice | undefined
  #current: Promise<void> | undefined

  constructor(deps: SettingsDeps) {
    this.#deps = deps
  }

  /** Reads the settings once, if Postgres is there, and goes on following them. */
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

  /** Calls back after settings were read that may be others than before. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /**
   * Reads the settings now, and the notice if Redis is there.
   *
   * @throws what the query or Redis throws
   */
  async read(): Promise<void> {
    const { db, catalog, redis } = this.#deps
    this.#rows = new Map((await listUpstreamSettings(db)).map((row) => [row.slug, row]))
    for (const api of catalog.known()) this.apply(api)
    this.#readAt = performance.now()
    for (const listener of this.#listeners) listener()
    if (redis.status === 'ready') this.#notice = await readNotice(redis)
  }

  /** What an operator tells everybody now. */
  get notice(): OperatorNotice | undefined {
    return this.#notice && Date.parse(this.#notice.until) > Date.now() ? this.#notice : undefined
  }

  /** Puts the settings that were read last in force for an API. */
  apply(api: Api): void {
    applySettings(api, this.#decode(this.#rows.get(api.slug)))
  }

  async #look(): Promise<void> {
    const { redis, log } = this.#deps
    try {
      // Without Redis the settings are still read now and then.
      const version = redis.status === 'ready' ? await redis.get(keys.settingsVersion) : (this.#version ?? null)
      if (version === this.#version && performance.now() - this.#readAt < READ_EVERY_MS) return
      await this.read()
      this.#version = version
    } catch (error) {
      log.debug({ err: error }, 'failed to read the settings of upstreams')
    }
  }

  #decode(row: UpstreamSettingsRow | undefined): OperatorSettings {
    const { config, log } = this.#deps
    return row ? decodeSettings(row, config.secrets.encryption, log) : {}
  }
}

/**
 * A row as settings. A key that cannot be opened is left out, so that calls go without it rather
 * than with a wrong key.
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
