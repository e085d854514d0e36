import { type Selectable, sql } from 'kysely'
import type { Db } from './database.ts'
import type { HealthChangesTable } from './operator-schema.ts'

/** A change of an upstream's health. */
export type HealthChange = Selectable<HealthChangesTable>

/** How long changes are kept, days. */
const KEPT_DAYS = 90

/** Stores changes. If a change is stored already, it stays unchanged. */
export async function insertHealthChanges(db: Db, changes: HealthChange[]): Promise<void> {
  if (changes.length === 0) return
  await db
    .insertInto('health_changes')
    .values(changes.map((change) => ({ ...change, numbers: JSON.stringify(change.numbers) })))
    .onConflict((conflict) => conflict.columns(['slug', 'id']).doNothing())
    .execute()
}

/**
 * An upstream's changes since a time, newest first; at most `limit`. If there was none since then,
 * its last change.
 */
export function listHealthChanges(
  db: Db,
  slug: string,
  { since, limit }: { since: Date; limit: number },
): Promise<HealthChange[]> {
  const last = db
    .selectFrom('health_changes')
    .select(({ fn }) => fn.max('at').as('at'))
    .where('slug', '=', slug)
  return db
    .selectFrom('health_changes')
    .selectAll()
    .where('slug', '=', slug)
    .where('at', '>=', sql<Date>`least(${since}, (${last}))`)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** The newest changes of all upstreams. */
export function listLatestHealthChanges(db: Db, limit: number): Promise<HealthChange[]> {
  return db.selectFrom('health_changes').selectAll().orderBy('at', 'desc').limit(limit).execute()
}

/** Deletes changes that are older than any listing shows. */
export async function deleteOldHealthChanges(db: Db): Promise<void> {
  await db
    .deleteFrom('health_changes')
    .where('at', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`)
    .execute()
}
