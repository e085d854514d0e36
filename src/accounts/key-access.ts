import { findApiKey } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import type { ApiKey } from '../db/schema.ts'
import { findTeamOf } from '../db/teams.ts'
import { GatewayError } from '../errors.ts'
import { MANAGERS } from './team-access.ts'
import { isUuid } from './uuid.ts'

/**
 * The expiry of a key, from a body; null: never.
 *
 * @throws GatewayError VALIDATION_ERROR for a time that does not exist or has passed
 */
export function readExpiry(value: string | null | undefined): Date | null {
  if (value == null) return null
  const expiresAt = new Date(value)
  if (!(expiresAt.getTime() > Date.now())) {
    throw new GatewayError('VALIDATION_ERROR', {
      message: 'Member expiresAt must be a time in the future.',
      tokens: { param: 'expiresAt' },
    })
  }
  return expiresAt
}

/**
 * A key that this user may change, rotate and revoke: the user's own key, or a key of a team that
 * the user manages. A revoked key is returned too: if the answer to its revocation was lost, the
 * client sends the request again, and the change is announced to the nodes again.
 *
 * @throws GatewayError KEY_NOT_FOUND; FORBIDDEN for a member who sees the team's keys but may not
 *   manage them
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
