import { randomUUID } from 'node:crypto'
import { SESSION_MS, signSessionToken } from '../accounts/session-token.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import type { User } from '../db/schema.ts'
import { deleteSurplusSessions, insertSession } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'

/** Sessions an account keeps; an older session ends when a newer session begins. */
export const SESSIONS_MAX = 20

export interface SessionDeps {
  config: Config
  db: Db
  redis: RedisConnection
  clock: { now: () => number }
  log: Log
}

/**
 * Begins a session of an account.
 * @param user as read when the password was compared, or when the provider's sign-in led to it
 * @returns the session's token
 * @throws GatewayError INVALID_CREDENTIALS if the account is disabled, or its password has changed
 *   since
 */
export async function startSession(
  { config, db, redis, clock, log }: SessionDeps,
  { id: userId, password_hash: passwordHash }: Pick<User, 'id' | 'password_hash'>,
): Promise<string> {
  const session = { id: randomUUID(), userId, passwordHash, expiresAt: new Date(clock.now() + SESSION_MS) }
  if (!(await insertSession(db, session))) throw new GatewayError('INVALID_CREDENTIALS')
  // Calls of sessions that were ended to make room are refused from now on.
  await withAnnouncement({ redis, log }, [userId], async (accountIds) => {
    if (!(await deleteSurplusSessions(db, session, SESSIONS_MAX))) accountIds.clear()
  })
  return await signSessionToken(config.secrets.jwt, { userId, sessionId: session.id }, session.expiresAt)
}
