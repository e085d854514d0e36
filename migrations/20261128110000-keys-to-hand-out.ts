import { type Kysely, sql } from 'kysely'

/**
 * What an owner allows a key or a connection, rotation of keys, provider keys of teams, and mails that are sent once. Nodes
 * of the version before pass over the new columns: set the first limit after the upgrade.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('api_keys')
    .addColumn('apis', sql`text[]`)
    .addColumn('per_minute', 'integer', (column) => column.check(sql`per_minute > 0`))
    .addColumn('per_month', 'integer', (column) => column.check(sql`per_month > 0`))
    .addColumn('in_flight', 'integer', (column) => column.check(sql`in_flight > 0`))
    .addColumn('limits_id', 'uuid')
    .addColumn('replaced_by', 'uuid')
    .execute()
  await sql`create index api_keys_limits_id on api_keys (limits_id) where limits_id is not null`.execute(db)
  await sql`create index api_keys_expires_at on api_keys (expires_at) where revoked_at is null`.execute(db)
  await db.schema
    .alterTable('connections')
    .addColumn('per_minute', 'integer', (column) => column.check(sql`per_minute > 0`))
    .addColumn('in_flight', 'integer', (column) => column.check(sql`in_flight > 0`))
    .execute()

  await db.schema
    .alterTable('provider_keys')
    .alterColumn('user_id', (column) => column.dropNotNull())
    .addColumn('team_id', 'uuid', (column) => column.references('teams.id').onDelete('cascade'))
    .execute()
  await db.schema
    .alterTable('provider_keys')
    .addCheckConstraint('provider_keys_one_owner', sql`num_nonnulls(user_id, team_id) = 1`)
    .execute()
  await db.schema
    .alterTable('provider_keys')
    .addUniqueConstraint('provider_keys_team_slug', ['team_id', 'slug'])
    .execute()

  await db.schema
    .alterTable('users')
    .addColumn('takes_notices', 'boolean', (column) => column.notNull().defaultTo(true))
    .execute()
  await db.schema
    .createTable('notices')
    .addColumn('account_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('notices_pkey', ['account_id', 'kind', 'period'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('notices').execute()
  await db.schema.alterTable('users').dropColumn('takes_notices').execute()
  await sql`delete from provider_keys where user_id is null`.execute(db)
  await db.schema.alterTable('provider_keys').dropConstraint('provider_keys_one_owner').execute()
  await db.schema
    .alterTable('provider_keys')
    .dropColumn('team_id')
    .alterColumn('user_id', (column) => column.setNotNull())
    .execute()
  await db.schema.alterTable('connections').dropColumn('per_minute').dropColumn('in_flight').execute()
  let keys = db.schema.alterTable('api_keys').dropColumn('apis')
  for (const column of ['per_minute', 'per_month', 'in_flight', 'limits_id', 'replaced_by'])
    keys = keys.dropColumn(column)
  await keys.execute()
}
