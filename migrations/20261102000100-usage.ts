import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // No foreign keys: a call that was made stays counted, whatever becomes of the account or key.
  await db.schema
    .createTable('usage_daily')
    .addColumn('day', 'date', (column) => column.notNull())
    .addColumn('user_id', 'uuid', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('status', 'smallint', (column) => column.notNull())
    .addColumn('mode', 'text', (column) => column.notNull())
    .addColumn('calls', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('usage_daily_pkey', ['user_id', 'day', 'key', 'slug', 'status', 'mode'])
    .execute()

  await db.schema
    .createTable('usage_batches')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('written_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('usage_batches').execute()
  await db.schema.dropTable('usage_daily').execute()
}
