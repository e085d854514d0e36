import { sql } from 'kysely'
import type { Secret } from '../config.ts'
import type { Db } from '../db/database.ts'
import type { Database } from '../db/schema.ts'
import { artifactRecord, clientRecord, operatorKeyRecord, providerKeyRecord } from './sealed-records.ts'
import { open, seal } from './secret-box.ts'

/** Most rows that each query reads. */
const BATCH_ROWS = 200

type Row = Record<string, unknown>

/** A table with stored secrets. */
interface SealedTable {
  name: keyof Database
  secretId: string
  sealed: string
  /** Columns of the table's primary key. */
  key: string[]
  /** Further columns from which the name of the record is made. */
  owner?: string[]
  record: (row: Row) => string
}

/** Tables whose stored secrets are sealed anew. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    ...{ name: 'upstream_settings', secretId: 'key_secret_id', sealed: 'key_sealed', key: ['slug'] },
    record: ({ slug }) => operatorKeyRecord(String(slug)),
  },
  {
    ...{ name: 'provider_keys', secretId: 'secret_id', sealed: 'sealed', key: ['id'] },
    owner: ['user_id', 'team_id', 'slug'],
    record: ({ user_id, team_id, slug }) => providerKeyRecord(String(team_id ?? user_id), String(slug)),
  },
  {
    ...{ name: 'oauth_clients', secretId: 'secret_id', sealed: 'sealed', key: ['id'] },
    record: ({ id }) => clientRecord(String(id)),
  },
  {
    ...{ name: 'oauth_artifacts', secretId: 'secret_id', sealed: 'sealed', key: ['kind', 'id_hash'] },
    record: ({ kind, id_hash }) => artifactRecord(String(kind), id_hash as Buffer),
  },
]

/**
 * Seals all stored secrets of earlier encryption keys with the current key, so that the operator
 * can remove the earlier keys. It may run in several processes at once, and beside processes that
 * write.
 *
 * @returns how many secrets were sealed again, and how many could not be opened and stay as they
 *   are
 */
export async function resealAll(db: Db, secrets: Secret[]): Promise<{ resealed: number; unreadable: number }> {
  const total = { resealed: 0, unreadable: 0 }
  for (const table of SEALED_TABLES) {
    let unreadable = 0
    for (;;) {
      const rows = await readOutdated(db, table, { secrets, skipped: unreadable })
      for (const row of rows) {
        if (await reseal(db, table, { row, secrets })) total.resealed += 1
        else unreadable += 1
      }
      if (rows.length < BATCH_ROWS) break
    }
    total.unreadable += unreadable
  }
  return total
}

/**
 * How many stored secrets still need an earlier encryption key; counts no further than `countMax`.
 */
export async function countOutdated(db: Db, secrets: Secret[], countMax: number): Promise<number> {
  let count = 0
  for (const table of SEALED_TABLES) {
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from (
      select 1 from ${sql.table(table.name)} where ${isOutdated(table, secrets)} limit ${countMax - count}
    ) as outdated`.execute(db)
    count += rows[0]?.count ?? 0
  }
  return count
}

function isOutdated({ secretId }: SealedTable, secrets: Secret[]) {
  const earlier = secrets.slice(1).map(({ id }) => id)
  return sql<boolean>`${sql.ref(secretId)} = any(${earlier})`
}

async function readOutdated(
  db: Db,
  table: SealedTable,
  { secrets, skipped }: { secrets: Secret[]; skipped: number },
): Promise<Row[]> {
  const key = sql.join(table.key.map((column) => sql.ref(column)))
  const columns = sql.join([...table.key, ...(table.owner ?? [])].map((column) => sql.ref(column)))
  const { rows } = await sql<Row>`
    select ${columns}, ${sql.ref(table.secretId)} as secret_id, ${sql.ref(table.sealed)} as sealed
    from ${sql.table(table.name)} where ${isOutdated(table, secrets)}
    order by ${key} limit ${BATCH_ROWS} offset ${skipped}`.execute(db)
  return rows
}

/** @returns false if the secret cannot be opened */
async function reseal(db: Db, table: SealedTable, { row, secrets }: { row: Row; secrets: Secret[] }): Promise<boolean> {
  const record = table.record(row)
  const before = row.sealed as Buffer
  let opened: string
  try {
    opened = open(secrets, record, { secretId: String(row.secret_id), bytes: before })
  } catch {
    // The bytes are not a secret of this row. The code that uses the row reports it.
    return false
  }
  const { secretId, bytes } = seal(secrets, record, opened)
  const isRow = sql.join(
    table.key.map((column) => sql`${sql.ref(column)} = ${row[column]}`),
    sql` and `,
  )
  // If another process wrote a new secret meanwhile, the new secret stays.
  await sql`update ${sql.table(table.name)}
    set ${sql.ref(table.secretId)} = ${secretId}, ${sql.ref(table.sealed)} = ${bytes}
    where ${isRow} and ${sql.ref(table.sealed)} = ${before}`.execute(db)
  return true
}
