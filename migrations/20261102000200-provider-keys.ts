import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('provider_keys')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('secret_id', 'text', (column) => column.notNull())
    .addColumn('sealed', 'bytea', (column) => column.notNull())
    .addColumn('cap_scope', 'text', (column) => column.notNull())
    .addColumn('masked', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) =>
      column.notNull().defaultTo('unvalidated').check(sql`status in ('valid', 'invalid', 'unvalidated')`),
    )
    .addColumn('saved_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_validated_at', 'timestamptz')
    .addUniqueConstraint('provider_keys_user_slug', ['user_id', 'slug'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('provider_keys').execute()
}
