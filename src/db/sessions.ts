import { sql } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { Db } from './database.ts'
import { TRUST_COLUMNS, type Trust } from './users.ts'

/** The user of a session that is still valid. */
export interface SessionUser extends Trust {
  id: string
  email: string
  tier: Tier
  terms_accepted_at: Date | null
}

/**
 * A session to insert, with the password hash that the account had when the log-in was checked;
 * null: no password.
 */
export interface NewSession {
  id: string
  userId: string
  passwordHash: string | null
  expiresAt: Date
}

/**
 * Begins a session if the account is enabled and still has the password that was checked. If the
 * password changes at the same time, the change ends this session too, as it ends all others.
 *
 * @returns whether the session began
 */
export async function insertSession(db: Db, session: NewSession): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('sessions')
    .columns(['id', 'user_id', 'expires_at'])
    .expression((build) =>
      build
        .selectFrom('users')
        .select([
          build.cast<string>(build.val(session.id), 'uuid').as('session_id'),
          'users.id',
          build.cast<Date>(build.val(session.expiresAt), 'timestamptz').as('expires_at'),
        ])
        .where('users.id', '=', session.userId)
        .where('users.password_hash', 'is not distinct from', session.passwordHash)
        .where('users.disabled_at', 'is', null)
        // Waits for a concurrent change of the account, and then reads what it wrote.
        .forShare(),
    )
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

/**
 * Deletes an account's oldest sessions beyond a number. Sessions that have ended go before valid
 * sessions, and the session that has just begun stays: after the clock was set back, it would seem
 * to be the oldest.
 *
 * @returns whether a session was deleted
 */
export async function deleteSurplusSessions(
  db: Db,
  { userId, id }: Pick<NewSession, 'userId' | 'id'>,
  sessionsMax: number,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('id', 'in', (build) =>
      build
        .selectFrom('sessions')
        .select('id')
        .where('user_id', '=', userId)
        .orderBy(sql`id = ${id}`, 'desc')
        .orderBy(sql`revoked_at is null and expires_at > now()`, 'desc')
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .offset(sessionsMax),
    )
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** The user of a session, unless the session is revoked or expired or the account is disabled. */
export function findSessionUser(db: Db, userId: string, sessionId: string): Promise<SessionUser | undefined> {
  return db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select(['users.id', 'users.email', 'users.tier', 'users.terms_accepted_at', ...TRUST_COLUMNS])
    .where('sessions.id', '=', sessionId)
    .where('sessions.user_id', '=', userId)
    .where('sessions.revoked_at', 'is', null)
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .where('users.disabled_at', 'is', null)
    .executeTakeFirst()
}

export async function revokeSession(db: Db, userId: string, sessionId: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('id', '=', sessionId)
    .where('revoked_at', 'is', null)
    .execute()
}

/** Revokes all sessions of an account, except the session to keep. */
export async function revokeSessions(db: Db, userId: string, keptSessionId?: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .$if(keptSessionId !== undefined, (update) => update.where('id', '!=', keptSessionId ?? ''))
    .execute()
}
