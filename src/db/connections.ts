import { sql } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { AllowedColumns, AllowedToCredential } from './api-keys.ts'
import type { Db } from './database.ts'
import type { Connection, NewConnection } from './schema.ts'
import { TRUST_COLUMNS, type Trust } from './users.ts'

/** What admission reads about an access token. */
export interface TokenOwner extends Pick<Connection, 'resource'>, Trust, AllowedToCredential {
  connectionId: string
  userId: string
  tier: Tier
  mayWrite: boolean
  expiresAt: Date
  disabledAt: Date | null
}

/** The owner of an access token, unless the token has expired or its connection has ended. */
export function findTokenOwner(db: Db, idHash: Buffer): Promise<TokenOwner | undefined> {
  return db
    .selectFrom('oauth_artifacts')
    .innerJoin('connections', 'connections.id', 'oauth_artifacts.connection_id')
    .innerJoin('users', 'users.id', 'connections.user_id')
    .select([
      'connections.id as connectionId',
      'users.id as userId',
      'users.tier as tier',
      'connections.resource as resource',
      'connections.apis as apis',
      'connections.addresses as addresses',
      'connections.per_month as perMonth',
      'connections.may_write as mayWrite',
      'connections.per_minute as perMinute',
      'connections.in_flight as inFlight',
      'connections.id as limitsId',
      'oauth_artifacts.expires_at as expiresAt',
      'users.disabled_at as disabledAt',
      ...TRUST_COLUMNS,
    ])
    .where('oauth_artifacts.kind', '=', 'AccessToken')
    .where('oauth_artifacts.id_hash', '=', idHash)
    .where(sql<boolean>`oauth_artifacts.expires_at > now()`)
    .where('connections.revoked_at', 'is', null)
    .executeTakeFirst()
}

/** The connections of an account that have not ended, newest first. */
export function listConnections(db: Db, userId: string): Promise<Connection[]> {
  return db
    .selectFrom('connections')
    .selectAll()
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
}

/**
 * Adds a connection. Earlier connections of the same application to the same resource end, so a
 * user who signs in again has one connection, not two.
 *
 * @returns whether the account may have another connection
 */
export function insertConnection(db: Db, connection: NewConnection, connectionsMax: number): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${connection.user_id}, 2))`.execute(transaction)
    const ended = await transaction
      .updateTable('connections')
      .set({ revoked_at: sql<Date>`now()` })
      .where('user_id', '=', connection.user_id)
      .where('client_id', '=', connection.client_id)
      .where('resource', '=', connection.resource)
      .where('revoked_at', 'is', null)
      .returning('id')
      .execute()
    for (const { id } of ended) await deleteTokens(transaction, id)
    const { count } = await transaction
      .selectFrom('connections')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('user_id', '=', connection.user_id)
      .where('revoked_at', 'is', null)
      .executeTakeFirstOrThrow()
    if (Number(count) >= connectionsMax) return false
    await transaction.insertInto('connections').values(connection).execute()
    return true
  })
}

/** A connection of an account that has not ended. It is locked until the transaction ends. */
export function lockConnection(transaction: Db, id: string, userId: string): Promise<Connection | undefined> {
  return transaction
    .selectFrom('connections')
    .selectAll()
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()
}

export function updateConnection(db: Db, id: string, allowed: Partial<AllowedColumns>): Promise<Connection> {
  return db.updateTable('connections').set(allowed).where('id', '=', id).returningAll().executeTakeFirstOrThrow()
}

/** Ends a connection of an account and deletes its tokens; false if there is no such connection. */
export function revokeConnection(db: Db, id: string, userId: string): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('connections')
      .set({ revoked_at: sql<Date>`now()` })
      .where('id', '=', id)
      .where('user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return false
    await deleteTokens(transaction, id)
    return true
  })
}

/**
 * Deletes the tokens of a connection. A refresh token that remained would continue to issue access
 * tokens, although all of them are refused.
 */
async function deleteTokens(transaction: Db, connectionId: string): Promise<void> {
  await transaction.deleteFrom('oauth_artifacts').where('connection_id', '=', connectionId).execute()
}

/** The account of a connection, even if the connection has ended. */
export async function findConnectionOwner(db: Db, id: string): Promise<string | undefined> {
  const row = await db.selectFrom('connections').select('user_id').where('id', '=', id).executeTakeFirst()
  return row?.user_id
}

/** Records when connections were last used, to the minute. Ids of keys among `ids` are ignored. */
export async function touchConnections(db: Db, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('connections')
    .set({ last_used_at: sql<Date>`now()` })
    .where('id', 'in', ids)
    .where(sql<boolean>`(last_used_at is null or last_used_at < now() - interval '1 minute')`)
    .execute()
}
