import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('health_changes')
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('at', 'timestamptz', (column) => column.notNull())
    .addColumn('from_status', 'text', (column) => column.notNull())
    .addColumn('to_status', 'text', (column) => column.notNull())
    .addColumn('cause', 'text', (column) => column.notNull())
    .addColumn('numbers', 'jsonb', (column) => column.notNull())
    // The record's id makes writing it down twice harmless.
    .addPrimaryKeyConstraint('health_changes_pkey', ['slug', 'id'])
    .execute()
  await sql`create index health_changes_slug_at on health_changes (slug, at desc)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('health_changes').execute()
}
