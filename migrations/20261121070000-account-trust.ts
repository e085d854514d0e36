import { type Kysely, sql } from 'kysely'

/** How far an account can be trusted, and who made a key. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('users')
    // When the account proved that it receives mail at its address.
    .addColumn('email_verified_at', 'timestamptz')
    // When an operator let it make live calls.
    .addColumn('approved_at', 'timestamptz')
    // Network that it signed up from; null for addresses that are not public.
    .addColumn('signup_network', 'text')
    .execute()
  // Accounts that could call before there was an approval keep that right.
  await sql`update users set approved_at = now()`.execute(db)
  await db.schema
    .alterTable('api_keys')
    // Null where it is not known, or the account is gone.
    .addColumn('created_by', 'uuid', (column) => column.references('users.id').onDelete('set null'))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('api_keys').dropColumn('created_by').execute()
  await db.schema
    .alterTable('users')
    .dropColumn('email_verified_at')
    .dropColumn('approved_at')
    .dropColumn('signup_network')
    .execute()
}
