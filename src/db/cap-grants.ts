import { sql } from 'kysely'
import type { Db } from './database.ts'

/** Requests that one worker sent under one cap in one minute. */
export interface CapGrants {
  slug: string
  bucket: string
  minute: Date
  worker: string
  granted: number
}

/** How long grants are kept, days. Longer windows cannot be restored. */
const KEPT_DAYS = 32

/** Adds grants to the stored counts. */
export async function addCapGrants(db: Db, grants: CapGrants[]): Promise<void> {
  await db
    .insertInto('cap_grants')
    .values(grants.map(({ bucket, ...grant }) => ({ ...grant, scope: bucket })))
    .onConflict((conflict) =>
      conflict
        .columns(['slug', 'scope', 'minute', 'worker'])
        .doUpdateSet({ granted: sql<number>`cap_grants.granted + excluded.granted` }),
    )
    .execute()
}

/** The requests that all workers sent under a cap since `since`, by minute. */
export async function readCapGrants(
  db: Db,
  { slug, bucket }: { slug: string; bucket: string },
  since: Date,
): Promise<{ minute: Date; granted: number }[]> {
  const rows = await db
    .selectFrom('cap_grants')
    .select(['minute', ({ fn }) => fn.sum<string>('granted').as('granted')])
    .where('slug', '=', slug)
    .where('scope', '=', bucket)
    .where('minute', '>=', since)
    .groupBy('minute')
    .orderBy('minute')
    .execute()
  return rows.map(({ minute, granted }) => ({ minute, granted: Number(granted) }))
}

export async function deleteOldCapGrants(db: Db): Promise<void> {
  await db
    .deleteFrom('cap_grants')
    .where('minute', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`)
    .execute()
}
