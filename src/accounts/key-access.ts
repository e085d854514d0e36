import { findApiKey } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import type { ApiKey } from '../db/schema.ts'
import { findTeamOf } from '../db/teams.ts'
import { GatewayError } from '../errors.ts'
import { MANAGERS } from './team-access.ts'
import { isUuid } from './uuid.ts'

/**
 * When a key is to expire, from a body; null: never.
 *
 * @throws GatewayError VALIDATION_ERROR for a time that does not exist, or is over already
 */
export function readExpiry(value: string | null | undefined): Date | null {
  if (value == null) return null
  const expiresAt = new Date(value)
  if (!(expiresAt.getTime() > Date.now())) {
    throw new GatewayError('VALIDATION_ERROR', {
      message: 'Member expiresAt must be in the future.',
      tokens: { param: 'expiresAt' },
    })
  }
  return expiresAt
}

/**
 * A key this user may change, rotate and revoke: an own key, or a key of a team that the user
 * manages. Also a key that is revoked already: the answer to it may have been lost, and then nobody
 * has heard of it.
 *
 * @throws GatewayError KEY_NOT_FOUND, or FORBIDDEN for a member who sees the team's keys and
 *   manages none
 */
export async function manageableKey(db: Db, keyId: string, userId: string): Promise<ApiKey> {
  const key = isUuid(keyId) ? await findApiKey(db, keyId) : undefined
  if (!key) throw new GatewayError('KEY_NOT_FOUND')
  const { team_id: teamId } = key
  if (teamId === null) {
    if (key.user_id !== userId) throw new GatewayError('KEY_NOT_FOUND')
    return key
  }
  const team = await findTeamOf(db, teamId, userId)
  if (!team) throw new GatewayError('KEY_NOT_FOUND')
  if (!MANAGERS.includes(team.role)) throw new GatewayError(key.revoked_at ? 'KEY_NOT_FOUND' : 'FORBIDDEN')
  return key
}
