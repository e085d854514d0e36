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
  /** Lifetime from now. */
  seconds: number
}

export interface FoundArtifact {
  idHash: Buffer
  secretId: string
  sealed: Buffer
  /**
   * When a code was used, or a refresh token was superseded. A later use is a replay (RFC 9700,
   * 4.14.2).
   */
  consumedAt: Date | null
}

/**
 * @param usedHash hash of the refresh token that led to this artifact: a new refresh token replaces
 *   it, or a new access token is stored for it
 */
export async function upsertArtifact(db: Db, artifact: StoredArtifact, usedHash?: Buffer): Promise<void> {
  const { kind, idHash, uidHash, connectionId, secretId, sealed, seconds } = artifact
  const values = {
    ...{ uid_hash: uidHash, connection_id: connectionId, secret_id: secretId, sealed },
    expires_at: sql<Date>`now() + make_interval(secs => ${seconds})`,
    parent_hash: kind === 'RefreshToken' && usedHash ? usedHash : null,
  }
  const withUse = kind === 'AccessToken' && usedHash ? db.with('superseded', () => supersession(usedHash)) : db
  await withUse
    .insertInto('oauth_artifacts')
    .values({ kind, id_hash: idHash, ...values })
    .onConflict((conflict) => conflict.columns(['kind', 'id_hash']).doUpdateSet(values))
    .execute()
}

/**
 * Marks a refresh token as superseded. A refresh token counts as used when an access token is
 * stored for it. This supersedes the token two steps before it: because the successor of that
 * token's successor is in use, the owner has received the successor. If only the direct successor
 * of a token was used, the token is not superseded, because a process may not have received the
 * answer, or another process of the application may still hold the token.
 */
function supersession(usedHash: Buffer) {
  return sql<never>`(update oauth_artifacts set superseded_at = now()
    where kind = 'RefreshToken' and superseded_at is null and id_hash = (
      select parent.parent_hash from oauth_artifacts as used
      join oauth_artifacts as parent on parent.kind = 'RefreshToken' and parent.id_hash = used.parent_hash
      where used.kind = 'RefreshToken' and used.id_hash = ${usedHash}))`
}

/** The unexpired artifact with this id or uid. */
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
      // Nodes of the previous version mark a used refresh token in `consumed_at`. @until 0.4.0
      sql<Date | null>`case kind when 'RefreshToken' then superseded_at else consumed_at end`.as('consumed_at'),
    ])
    .where('kind', '=', kind)
    .where((where) => ('idHash' in by ? where('id_hash', '=', by.idHash) : where('uid_hash', '=', by.uidHash)))
    .where(sql<boolean>`expires_at > now()`)
    .executeTakeFirst()
  return row && { idHash: row.id_hash, secretId: row.secret_id, sealed: row.sealed, consumedAt: row.consumed_at }
}

/** Marks a code as used; false if it was used before. */
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

/** The account to whose connection an artifact belongs; undefined if there is none. */
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

/** A registered application. The time of its last use is recorded once a day. */
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
