import { type Kysely, sql } from 'kysely'

/** By what the clean-up looks for old rows, of which there are none most of the time: without these it reads whole tables. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex('usage_batches_written_at').on('usage_batches').column('written_at').execute()
  await db.schema.createIndex('sessions_expires_at').on('sessions').column('expires_at').execute()
  // Few keys end: the others take no room in it.
  await sql`create index api_keys_end on api_keys (least(revoked_at, expires_at))
    where least(revoked_at, expires_at) is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const index of ['usage_batches_written_at', 'sessions_expires_at', 'api_keys_end'])
    await db.schema.dropIndex(index).execute()
}
