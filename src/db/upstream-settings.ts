import { sql } from 'kysely'
import type { PausedMode } from '../catalog/catalog.ts'
import type { Caps, Tier } from '../catalog/upstream.ts'
import type { Db } from './database.ts'
import type { UpstreamSettingsRow } from './schema.ts'

export function listUpstreamSettings(db: Db): Promise<UpstreamSettingsRow[]> {
  return db.selectFrom('upstream_settings').selectAll().execute()
}

/** The settings of one upstream, locked until the transaction ends. */
export async function lockUpstreamSettings(transaction: Db, slug: string): Promise<UpstreamSettingsRow | undefined> {
  // An advisory lock, because there may be no row yet.
  await sql`select pg_advisory_xact_lock(hashtextextended(${slug}, 2))`.execute(transaction)
  return await transaction.selectFrom('upstream_settings').selectAll().where('slug', '=', slug).executeTakeFirst()
}

export interface NewUpstreamSettings {
  enabled: boolean | null
  tierRequired: Tier | null
  caps: Partial<Caps> | null
  key: { secretId: string; bytes: Buffer } | null
}

export async function saveUpstreamSettings(db: Db, slug: string, settings: NewUpstreamSettings): Promise<void> {
  const columns = {
    enabled: settings.enabled,
    tier_required: settings.tierRequired,
    caps: settings.caps === null ? null : JSON.stringify(settings.caps),
    key_secret_id: settings.key?.secretId ?? null,
    key_sealed: settings.key?.bytes ?? null,
    updated_at: sql<Date>`now()`,
  }
  await db
    .insertInto('upstream_settings')
    .values({ slug, ...columns })
    .onConflict((conflict) => conflict.column('slug').doUpdateSet(columns))
    .execute()
}

/** Records what happens to calls of a paused upstream; null: it is not paused. */
export async function savePausedMode(db: Db, slug: string, mode: PausedMode | null): Promise<void> {
  const columns = { paused_mode: mode, updated_at: sql<Date>`now()` }
  await db
    .insertInto('upstream_settings')
    .values({ slug, ...columns })
    .onConflict((conflict) => conflict.column('slug').doUpdateSet(columns))
    .execute()
}
