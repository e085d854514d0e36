import { errors, type KoaContextWithOIDC } from 'oidc-provider'
import { GatewayError } from '../errors.ts'
import { retryAfterSeconds } from '../http/answer/public-error.ts'
import { takeThrottle } from '../throttles/throttle.ts'
import type { ArtifactDeps } from './artifact-adapter.ts'

/**
 * Refreshes of a connection in any minute. A token gets successors until it is superseded, which is
 * when the successor of a successor is used, so this limit also bounds the successors of one token.
 * Processes that share a stored token refresh at the same time, usually five of them.
 */
const REFRESHES_PER_MINUTE = 20

/**
 * Refuses a refresh if the connection refreshes too often. Runs before new tokens are stored.
 *
 * @throws TemporarilyUnavailable with 429 and `Retry-After`, after which clients keep the tokens
 *   that they have
 */
export async function limitRefreshes(
  deps: ArtifactDeps,
  context: Pick<KoaContextWithOIDC, 'oidc' | 'set'>,
): Promise<void> {
  const { grantId = '' } = context.oidc.entities.RefreshToken ?? {}
  try {
    // Fails open without Redis, because each node also limits each client address.
    await takeThrottle(deps, {
      name: 'refresh',
      subject: grantId,
      max: REFRESHES_PER_MINUTE,
      code: 'RATE_LIMIT_EXCEEDED',
    })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    context.set('retry-after', String(retryAfterSeconds(error) ?? 1))
    const refusal = new errors.TemporarilyUnavailable(
      `the application refreshed its tokens ${REFRESHES_PER_MINUTE} times within a minute; try again in a minute`,
    )
    throw Object.assign(refusal, { status: 429, statusCode: 429 })
  }
}
