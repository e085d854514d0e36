import { type Kysely, sql } from 'kysely'

/**
 * A refresh token keeps the hash of the token that it came from. It is superseded when a token two steps after it is used:
 * from then on its use is a replay. Nodes of the version before mark each used token in `consumed_at`, which may not end a
 * connection here: only a use before this migration does, unless the other process of a parallel refresh may still come.
 * `use_id` stays for those nodes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('oauth_artifacts')
    .addColumn('parent_hash', 'bytea')
    .addColumn('superseded_at', 'timestamptz')
    .execute()
  await sql`update oauth_artifacts set superseded_at = consumed_at
    where kind = 'RefreshToken' and consumed_at < now() - interval '30 seconds'`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('oauth_artifacts').dropColumn('parent_hash').dropColumn('superseded_at').execute()
}
