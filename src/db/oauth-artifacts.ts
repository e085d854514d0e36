import { sql } from 'kysely'
import type { Db } from './database.ts'

/** A code, token, grant or sign-in as it is stored. */
export interface StoredArtifact {
  kind: string
  idHash: Buffer
  uidHash: Buffer | null
  connectionId: string | null
  secretId: string
  sealed: Buffer
  expiresAt: Date
}

/** One use of a refresh token, by the hash of its id. */
export interface TokenUse {
  idHash: Buffer
  useId: string
  /** Stands in place of `useId` once this use has counted. */
  countedId: string
}

export interface FoundArtifact {
  idHash: Buffer
  secretId: string
  sealed: Buffer
  /** Null also for a refresh token whose use is too recent to be a replay; it is good for nothing all the same. */
  consumedAt: Date | null
}

/**
 * How long another use of a refresh token is refused alone, from the use that counted: two processes of one application
 * that refresh at once, and one that asks again because it got no answer, are no thieves. Later it is a replay (RFC 9700,
 * 4.14.2).
 */
const isRecentUse = sql<boolean>`(kind = 'RefreshToken' and consumed_at > now() - interval '30 seconds')`

export async function upsertArtifact(db: Db, artifact: StoredArtifact): Promise<void> {
  const { kind, idHash, uidHash, connectionId, secretId, sealed, expiresAt } = artifact
  const values = { uid_hash: uidHash, connection_id: connectionId, secret_id: secretId, sealed, expires_at: expiresAt }
  await db
    .insertInto('oauth_artifacts')
    .values({ kind, id_hash: idHash, ...values })
    .onConflict((conflict) => conflict.columns(['kind', 'id_hash']).doUpdateSet(values))
    .execute()
}

/** By its id or its uid, while it has not expired. */
export async function findArtifact(
  db: Db,
  kind: string,
  by: { idHash: Buffer } | { uidHash: Buffer },
): Promise<FoundArtifact | undefined> {
  const row = await db
    .selectFrom('oauth_artifacts')
    .select([
      'id_hash',
      'secret_id',
      'sealed',
      sql<Date | null>`case when ${isRecentUse} then null else consumed_at end`.as('consumed_at'),
    ])
    .where('kind', '=', kind)
    .where((where) => ('idHash' in by ? where('id_hash', '=', by.idHash) : where('uid_hash', '=', by.uidHash)))
    .where(sql<boolean>`expires_at > now()`)
    .executeTakeFirst()
  return row && { idHash: row.id_hash, secretId: row.secret_id, sealed: row.sealed, consumedAt: row.consumed_at }
}

/** The sealed form of a record under another secret, in place of the one under `before`; one written meanwhile stays. */
export interface Resealed {
  before: string
  secretId: string
  sealed: Buffer
}

export async function resealArtifact(
  db: Db,
  { kind, idHash }: { kind: string; idHash: Buffer },
  { before, secretId, sealed }: Resealed,
): Promise<void> {
  await db
    .updateTable('oauth_artifacts')
    .set({ secret_id: secretId, sealed })
    .where('kind', '=', kind)
    .where('id_hash', '=', idHash)
    .where('secret_id', '=', before)
    .execute()
}

export async function resealClient(db: Db, id: string, { before, secretId, sealed }: Resealed): Promise<void> {
  await db
    .updateTable('oauth_clients')
    .set({ secret_id: secretId, sealed })
    .where('id', '=', id)
    .where('secret_id', '=', before)
    .execute()
}

/** Marks a code as used; false when it was used before. */
export async function consumeArtifact(db: Db, kind: string, idHash: Buffer): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('oauth_artifacts')
    .set({ consumed_at: sql<Date>`now()` })
    .where('kind', '=', kind)
    .where('id_hash', '=', idHash)
    .where('consumed_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Begins a use of a refresh token, in place of one that has not counted yet: its process may be gone, and nobody has got
 * tokens of it. False when one has counted.
 */
export async function beginTokenUse(db: Db, { idHash, useId }: TokenUse): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('oauth_artifacts')
    .set({ use_id: useId })
    .where('kind', '=', 'RefreshToken')
    .where('id_hash', '=', idHash)
    .where('consumed_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Stores the last token that comes of a use, with which the use counts; false when another one was begun or counted
 * meanwhile; a node of the version before counts one without its id. May be done again where its answer was lost.
 */
export async function upsertOfUse(db: Db, artifact: StoredArtifact, use: TokenUse): Promise<boolean> {
  const { uidHash, connectionId, secretId, sealed, expiresAt } = artifact
  const { numAffectedRows } = await sql`
    with used as (
      update oauth_artifacts set consumed_at = coalesce(consumed_at, now()), use_id = ${use.countedId}
      where kind = 'RefreshToken' and id_hash = ${use.idHash}
        and (use_id = ${use.useId} and consumed_at is null or use_id = ${use.countedId})
      returning id_hash
    )
    insert into oauth_artifacts (kind, id_hash, uid_hash, connection_id, secret_id, sealed, expires_at)
    select ${artifact.kind}, ${artifact.idHash}::bytea, ${uidHash}::bytea, ${connectionId}::uuid, ${secretId},
      ${sealed}::bytea, ${expiresAt}::timestamptz
    from used
    on conflict (kind, id_hash) do update set sealed = excluded.sealed, secret_id = excluded.secret_id`.execute(db)
  return numAffectedRows === 1n
}

/** The account whose connection an artifact belongs to; undefined when there is none. */
export async function findArtifactOwner(db: Db, kind: string, idHash: Buffer): Promise<string | undefined> {
  const row = await db
    .selectFrom('oauth_artifacts')
    .innerJoin('connections', 'connections.id', 'oauth_artifacts.connection_id')
    .select('connections.user_id')
    .where('oauth_artifacts.kind', '=', kind)
    .where('oauth_artifacts.id_hash', '=', idHash)
    .executeTakeFirst()
  return row?.user_id
}

export async function deleteArtifact(db: Db, kind: string, idHash: Buffer): Promise<void> {
  await db.deleteFrom('oauth_artifacts').where('kind', '=', kind).where('id_hash', '=', idHash).execute()
}

export interface StoredClient {
  id: string
  secretId: string
  sealed: Buffer
}

export async function insertClient(db: Db, { id, secretId, sealed }: StoredClient): Promise<void> {
  const values = { secret_id: secretId, sealed }
  await db
    .insertInto('oauth_clients')
    .values({ id, ...values })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute()
}

/** A registered application; that it is used is noted once a day. */
export async function findClient(db: Db, id: string): Promise<StoredClient | undefined> {
  const row = await db
    .selectFrom('oauth_clients')
    .select(['id', 'secret_id', 'sealed', 'last_used_at'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) return undefined
  if (Date.now() - row.last_used_at.getTime() > 86_400_000) {
    await db.updateTable('oauth_clients').set({ last_used_at: sql<Date>`now()` }).where('id', '=', id).execute()
  }
  return { id: row.id, secretId: row.secret_id, sealed: row.sealed }
}

export async function deleteClient(db: Db, id: string): Promise<void> {
  await db.deleteFrom('oauth_clients').where('id', '=', id).execute()
}
