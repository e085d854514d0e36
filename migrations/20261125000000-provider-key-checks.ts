import type { Kysely } from 'kysely'

/** Why the last validation of a caller's key showed nothing of the key, when that was, and when it is tried again by itself. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('provider_keys')
    .addColumn('failure_code', 'text')
    .addColumn('failed_at', 'timestamptz')
    .addColumn('next_validation_at', 'timestamptz')
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('provider_keys')
    .dropColumn('failure_code')
    .dropColumn('failed_at')
    .dropColumn('next_validation_at')
    .execute()
}
