import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('teams')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('owner_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('updated_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('teams_owner_id').on('teams').column('owner_id').execute()

  await db.schema
    .createTable('team_members')
    .addColumn('team_id', 'uuid', (column) => column.notNull().references('teams.id').onDelete('cascade'))
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('role', 'text', (column) => column.notNull().check(sql`role in ('owner', 'admin', 'member')`))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('team_members_pkey', ['team_id', 'user_id'])
    .execute()
  await db.schema.createIndex('team_members_user_id').on('team_members').column('user_id').execute()
  // Whatever races there are, a team never has two owners.
  await sql`create unique index team_members_one_owner on team_members (team_id) where role = 'owner'`.execute(db)

  await db.schema
    .alterTable('api_keys')
    .addColumn('team_id', 'uuid', (column) => column.references('teams.id').onDelete('cascade'))
    .execute()
  await sql`create index api_keys_team_id on api_keys (team_id) where team_id is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('api_keys').dropColumn('team_id').execute()
  await db.schema.dropTable('team_members').execute()
  await db.schema.dropTable('teams').execute()
}
