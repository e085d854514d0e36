import { type Kysely, sql } from 'kysely'

/** Requests sent per cap, minute and worker: what is needed to hold long windows when Redis lost its memory. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('cap_grants')
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('minute', 'timestamptz', (column) => column.notNull())
    .addColumn('worker', 'uuid', (column) => column.notNull())
    .addColumn('granted', 'integer', (column) => column.notNull().check(sql`granted > 0`))
    .addPrimaryKeyConstraint('cap_grants_pkey', ['slug', 'scope', 'minute', 'worker'])
    .execute()
  await db.schema.createIndex('cap_grants_minute').on('cap_grants').column('minute').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('cap_grants').execute()
}
