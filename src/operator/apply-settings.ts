import { isDeepStrictEqual } from 'node:util'
import Type, { type Static } from 'typebox'
import { operatorKeyRecord } from '../accounts/sealed-records.ts'
import { open } from '../accounts/secret-box.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Secret } from '../config.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { UpstreamSettingsRow } from '../db/schema.ts'
import {
  listUpstreamSettings,
  lockUpstreamSettings,
  savePausedMode,
  saveUpstreamSettings,
} from '../db/upstream-settings.ts'
import { GatewayError } from '../errors.ts'
import { auditedSettings, checkTogether, mergeChange, UpstreamChange } from './change-upstream.ts'

/**
 * Settings of several upstreams. An absent member does not change; null resets a member to its
 * default.
 */
export const SettingsChange = Type.Object(
  {
    upstreams: Type.Record(
      Type.String({ maxLength: 64 }),
      Type.Object(
        { ...UpstreamChange.properties, paused: Type.Optional(nullable(Type.Enum(['hold', 'refuse']))) },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
)
export type SettingsChange = Static<typeof SettingsChange>
export type StoredSettings = Static<typeof StoredSettings>

export const SettingsAnswer = Type.Object({
  applied: Type.Boolean({ description: 'False for a dry run, and if there is no difference' }),
  differences: Type.Array(
    Type.Object({
      slug: Type.String(),
      member: Type.String({ description: 'enabled, tierRequired, caps, paused or key' }),
      before: Type.Unknown({ description: 'null: the default. For a key: only whether a key is stored' }),
      after: Type.Unknown(),
    }),
  ),
})
export type SettingsDifference = Static<typeof SettingsAnswer>['differences'][number]

/** The settings that operators have stored, for every upstream that has stored settings. */
export const StoredSettings = Type.Object({
  ...SettingsChange.properties,
  keys: Type.Array(Type.String(), {
    description: 'Upstreams with a key that an operator stored. No answer contains a key',
  }),
})

/**
 * The stored settings, in the form that `applySettingsChange` accepts. Applying them changes
 * nothing.
 */
export async function readStoredSettings({ db, catalog }: { db: Db; catalog: Catalog }): Promise<StoredSettings> {
  const stored: StoredSettings = { upstreams: {}, keys: [] }
  const rows = await listUpstreamSettings(db)
  for (const row of rows.toSorted((one, other) => (one.slug < other.slug ? -1 : 1))) {
    const { slug, enabled, tier_required: tierRequired, caps, paused_mode: paused, key_sealed: key } = row
    // The own API was removed. Its settings stay stored in case it returns.
    if (!catalog.has(slug)) continue
    const settings = {
      ...(enabled !== null && { enabled }),
      ...(tierRequired !== null && { tierRequired }),
      ...(caps !== null && { caps }),
      ...(paused !== null && { paused }),
    }
    if (Object.keys(settings).length > 0) stored.upstreams[slug] = settings
    if (key !== null) stored.keys.push(slug)
  }
  return stored
}

/**
 * Applies the settings of several upstreams in one transaction, all or none, as one entry of the
 * audit log.
 *
 * @returns the differences, and the upstreams whose key has changed
 * @throws GatewayError API_NOT_FOUND, or VALIDATION_ERROR for settings that do not fit together
 */
export function applySettingsChange(
  deps: { db: Db; catalog: Catalog; secrets: Secret[] },
  { upstreams }: SettingsChange,
  { actor, isDryRun }: { actor: string; isDryRun: boolean },
): Promise<{ differences: SettingsDifference[]; otherKeys: Api[] }> {
  // The order is fixed, so that two concurrent changes cannot deadlock.
  const changes = Object.entries(upstreams).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return deps.db.transaction().execute(async (transaction) => {
    const planned: PlannedChange[] = []
    for (const [slug, change] of changes) planned.push(await plan({ ...deps, transaction }, slug, change))
    const differences = planned.flatMap((each) => each.differences)
    if (isDryRun || differences.length === 0) return { differences, otherKeys: [] }
    for (const { save } of planned) await save(transaction)
    const stateOf = (name: 'before' | 'after') => {
      const state: Record<string, Record<string, unknown>> = {}
      for (const { slug, member, [name]: value } of differences) state[slug] = { ...state[slug], [member]: value }
      return state
    }
    await insertAuditRecord(transaction, {
      ...{ actor, action: 'settings.apply', subject: Object.keys(stateOf('after')).join(' ') },
      ...{ before: stateOf('before'), after: stateOf('after') },
    })
    return { differences, otherKeys: planned.flatMap(({ api, isOtherKey }) => (isOtherKey ? [api] : [])) }
  })
}

interface PlannedChange {
  api: Api
  differences: SettingsDifference[]
  isOtherKey: boolean
  save: (transaction: Db) => Promise<void>
}

async function plan(
  { catalog, secrets, transaction }: { catalog: Catalog; secrets: Secret[]; transaction: Db },
  slug: string,
  { paused, ...change }: SettingsChange['upstreams'][string],
): Promise<PlannedChange> {
  const api = catalog.get(slug)
  if (!api) {
    const { code, message } = apiNotFound(catalog.values(), slug)
    throw new GatewayError(code, { message: `${slug.slice(0, 60)}: ${message}` })
  }
  const row = await lockUpstreamSettings(transaction, slug)
  const isSameKey = change.key !== undefined && (change.key ?? null) === keyOf(row, secrets)
  const { key: _key, ...others } = change
  const settings = mergeChange(row, isSameKey ? others : change, { slug, secrets })
  checkTogether(api, change, settings)
  const before = { ...auditedSettings(mergeChange(row, {}, { slug, secrets })), paused: row?.paused_mode ?? null }
  const pausedAfter = paused === undefined ? before.paused : paused
  const after = { ...auditedSettings(settings), paused: pausedAfter }
  const isOtherKey = change.key !== undefined && !isSameKey
  const differences = Object.entries(after).flatMap(([member, value]) => {
    const known: unknown = Reflect.get(before, member)
    if (member === 'key' ? !isOtherKey : isDeepStrictEqual(known, value)) return []
    const shown = member === 'key' && known !== null && value !== null ? 'replaced' : value
    return [{ slug, member, before: known, after: shown }]
  })
  const save = async (db: Db): Promise<void> => {
    if (differences.length === 0) return
    await saveUpstreamSettings(db, slug, settings)
    await savePausedMode(db, slug, pausedAfter)
  }
  return { api, differences, isOtherKey, save }
}

/**
 * The stored key; null if there is none; undefined if this process cannot decrypt it. Any new key
 * replaces such a key.
 */
function keyOf(row: UpstreamSettingsRow | undefined, secrets: Secret[]): string | null | undefined {
  if (!row?.key_sealed || !row.key_secret_id) return null
  try {
    return open(secrets, operatorKeyRecord(row.slug), { secretId: row.key_secret_id, bytes: row.key_sealed })
  } catch {
    return undefined
  }
}
