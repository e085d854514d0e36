import { type Kysely, sql } from 'kysely'

/** What callers of a paused upstream get: `hold`, their calls wait, or `refuse`; null while it is not paused. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('upstream_settings')
    .addColumn('paused_mode', 'text', (column) => column.check(sql`paused_mode in ('hold', 'refuse')`))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('upstream_settings').dropColumn('paused_mode').execute()
}
