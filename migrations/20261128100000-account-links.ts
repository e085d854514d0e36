import { type Kysely, sql } from 'kysely'

/** One-time links that set a new password: only the hash of a link's token is kept. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('account_links')
    .addColumn('token_hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('proves_address', 'boolean', (column) => column.notNull())
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('account_links_user_id').on('account_links').column('user_id').execute()
  // An account that is deleted is taken out of the keys that it made: without an index, Postgres reads all keys for it.
  await sql`create index api_keys_created_by on api_keys (created_by) where created_by is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('api_keys_created_by').execute()
  await db.schema.dropTable('account_links').execute()
}
