import { sql } from 'kysely'
import { partitionOf } from './call-log-partitions.ts'
import type { Db } from './database.ts'
import type { CallRow } from './schema.ts'

/** A row to insert; `at` in milliseconds since the epoch. */
export type NewCallRow = Omit<CallRow, 'at'> & { at: number }

/**
 * Inserts rows with one statement. Existing rows stay unchanged, because the answer to an earlier
 * attempt may have been lost. The rows are sent as one JSON text, which costs this process the
 * least.
 */
export async function insertCallRows(db: Db, rows: NewCallRow[]): Promise<void> {
  await sql`
    insert into call_log (id, at, request_id, account_id, key_id, status, attempts, quoted_ms, admission_ms, queue_ms,
        permit_ms, upstream_ms, total_ms, bytes, mode, via, slug, endpoint, code, cause, cache, tool)
      select id, to_timestamp(at / 1000.0), request_id, account_id, key_id, status, attempts, quoted_ms, admission_ms,
        queue_ms, permit_ms, upstream_ms, total_ms, bytes, mode, via, slug, endpoint, code, cause, cache, tool
      from json_to_recordset(${JSON.stringify(rows)}) as row (
        id uuid, at bigint, request_id uuid, account_id uuid, key_id uuid, status smallint, attempts smallint,
        quoted_ms integer, admission_ms real, queue_ms real, permit_ms real, upstream_ms real, total_ms real,
        bytes integer, mode text, via text, slug text, endpoint text, code text, cause text, cache text, tool text)
    on conflict do nothing`.execute(db)
}

/** Bytes of the rows of a UTC day with their indexes; 0 if there are none. */
export async function readDayBytes(db: Db, day: string): Promise<number> {
  const { rows } = await sql<{ bytes: string }>`
    select coalesce(pg_total_relation_size(to_regclass(${partitionOf(day)})), 0) as bytes`.execute(db)
  return Number(rows[0]?.bytes ?? 0)
}
