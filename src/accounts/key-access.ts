import { findApiKey } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import type { ApiKey } from '../db/schema.ts'
import { findTeamOf } from '../db/teams.ts'
import { GatewayError } from '../errors.ts'
import { MANAGERS } from './team-access.ts'
import { isUuid } from './uuid.ts'

/** The last time that has four digits for its year in UTC, as times in answers have. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * The expiry of a key, from a body; null: never. A leap second counts as the second before it,
 * because `Date` has no leap seconds.
 *
 * @param now the time of Redis, milliseconds since the epoch
 * @throws GatewayError VALIDATION_ERROR for a time that has passed, or has more digits in its year
 */
export function readExpiry(value: string | null | undefined, now: number): Date | null {
  if (value == null) return null
  const expiresAt = new Date(value.replace(/:60(?=[.Z+-])/i, ':59'))
  if (!(expiresAt.getTime() > now && expiresAt.getTime() <= LAST_TIME)) {
    throw new GatewayError('VALIDATION_ERROR', {
      message: 'Member expiresAt must be a time in the future, before the year 10000.',
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
