import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { PausedMode } from '../catalog/catalog.ts'
import type { Caps, Tier } from '../catalog/upstream.ts'

/** The tables that do not belong to accounts: changes of operators, and facts about upstreams. */

type Timestamp = ColumnType<Date, Date | undefined, Date>

/**
 * Settings that operators changed. Null keeps the value of the upstream's file and the environment.
 */
export interface UpstreamSettingsTable {
  slug: string
  enabled: boolean | null
  tier_required: Tier | null
  caps: JSONColumnType<Partial<Caps>> | null
  paused_mode: PausedMode | null
  key_secret_id: string | null
  key_sealed: Buffer | null
  updated_at: Timestamp
}

export interface AuditLogTable {
  id: Generated<string>
  at: Timestamp
  actor: string
  action: string
  subject: string
  before: JSONColumnType<Record<string, unknown>> | null
  after: JSONColumnType<Record<string, unknown>> | null
}

/** A change of an upstream's health, with the numbers that led to it. */
export interface HealthChangesTable {
  slug: string
  /**
   * Id of the record in the upstream's stream. It identifies the change, whichever process stores
   * it.
   */
  id: string
  at: Date
  from_status: string
  to_status: string
  cause: string
  numbers: ColumnType<HealthNumbers, string, string>
}

export interface HealthNumbers {
  score: number
  ok: number
  fail: number
  /** Milliseconds; null if there were no recent answers. */
  p95Ms: number | null
  /** Code of the attempt that caused the change. */
  code: string
  source: string
}

export interface CapGrantsTable {
  slug: string
  scope: string
  minute: Date
  worker: string
  granted: number
}
