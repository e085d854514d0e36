import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('upstream_settings')
    .addColumn('slug', 'text', (column) => column.primaryKey())
    .addColumn('enabled', 'boolean')
    .addColumn('tier_required', 'text', (column) =>
      column.check(sql`tier_required in ('developer', 'pro', 'business', 'enterprise')`),
    )
    .addColumn('caps', 'jsonb')
    .addColumn('key_secret_id', 'text')
    .addColumn('key_sealed', 'bytea')
    .addColumn('updated_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()

  await db.schema
    .createTable('audit_log')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedAlwaysAsIdentity())
    .addColumn('at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('before', 'jsonb')
    .addColumn('after', 'jsonb')
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('audit_log').execute()
  await db.schema.dropTable('upstream_settings').execute()
}
