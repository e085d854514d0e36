import { type Kysely, sql } from 'kysely'

/** Sign-in of accounts at an OIDC provider: to which account a person's sign-in leads. Such an account may have no password. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('identities')
    .addColumn('issuer', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('identities_pkey', ['issuer', 'subject'])
    .execute()
  // One person of a provider has an account; the index serves its deletion and its export too.
  await db.schema.createIndex('identities_user_id').unique().on('identities').columns(['user_id', 'issuer']).execute()
  await db.schema
    .alterTable('users')
    .alterColumn('password_hash', (column) => column.dropNotNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  // A version before cannot read an account without a password: no password has this hash.
  await sql`update users set password_hash = '$none' where password_hash is null`.execute(db)
  await db.schema
    .alterTable('users')
    .alterColumn('password_hash', (column) => column.setNotNull())
    .execute()
  await db.schema.dropTable('identities').execute()
}
