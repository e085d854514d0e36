import { type Kysely, sql } from 'kysely'

/**
 * Calls that were refused before they were queued. They stand apart from `usage_daily`, from which the month's count is
 * rebuilt: a refusal is shown and never charged.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('refusals_daily')
    .addColumn('day', 'date', (column) => column.notNull())
    .addColumn('user_id', 'uuid', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('status', 'smallint', (column) => column.notNull())
    .addColumn('mode', 'text', (column) => column.notNull().check(sql`mode in ('live', 'test')`))
    .addColumn('calls', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('refusals_daily_pkey', ['user_id', 'day', 'key', 'slug', 'status', 'mode'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('refusals_daily').execute()
}
