import type { Kysely } from 'kysely'

/**
 * The newest use of a refresh token. A use that has not stored its tokens yet shows here alone and leaves `consumed_at`
 * empty, so that nodes of the version before, which know that column only, take the token as unused too.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('oauth_artifacts').addColumn('use_id', 'uuid').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('oauth_artifacts').dropColumn('use_id').execute()
}
