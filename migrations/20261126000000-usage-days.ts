import type { Kysely } from 'kysely'

const TABLES = ['usage_daily', 'refusals_daily']

/** By what the clean-up finds days whose time is over; the primary keys begin with the account. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) await db.schema.createIndex(`${table}_day`).on(table).column('day').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) await db.schema.dropIndex(`${table}_day`).execute()
}
