import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('oauth_clients')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('secret_id', 'text', (column) => column.notNull())
    .addColumn('sealed', 'bytea', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema
    .createTable('connections')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('client_id', 'text', (column) => column.notNull())
    .addColumn('client_name', 'text', (column) => column.notNull())
    .addColumn('redirect_host', 'text', (column) => column.notNull())
    .addColumn('resource', 'text', (column) => column.notNull())
    .addColumn('apis', sql`text[]`)
    .addColumn('per_month', 'integer', (column) => column.check(sql`per_month > 0`))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz')
    .addColumn('revoked_at', 'timestamptz')
    .execute()
  await db.schema.createIndex('connections_user').on('connections').column('user_id').execute()
  await db.schema
    .createTable('oauth_artifacts')
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('id_hash', 'bytea', (column) => column.notNull())
    .addColumn('uid_hash', 'bytea')
    .addColumn('connection_id', 'uuid', (column) => column.references('connections.id').onDelete('cascade'))
    .addColumn('secret_id', 'text', (column) => column.notNull())
    .addColumn('sealed', 'bytea', (column) => column.notNull())
    .addColumn('consumed_at', 'timestamptz')
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .addPrimaryKeyConstraint('oauth_artifacts_pkey', ['kind', 'id_hash'])
    .execute()
  await db.schema.createIndex('oauth_artifacts_connection').on('oauth_artifacts').column('connection_id').execute()
  await db.schema.createIndex('oauth_artifacts_expiry').on('oauth_artifacts').column('expires_at').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['oauth_artifacts', 'connections', 'oauth_clients']) await db.schema.dropTable(table).execute()
}
