import { randomUUID } from 'node:crypto'
import type { Principal } from '../../src/admission/authenticate.ts'
import { accountKeys } from '../../src/redis/keys.ts'

/**
 * Makes an account on the Pro plan, and the principal of its session, whose version Redis knows.
 */
export async function createPrincipal(redis: {
  set: (key: string, value: string) => Promise<unknown>
}): Promise<Principal> {
  const accountId = randomUUID()
  await redis.set(accountKeys.version(accountId), 'v')
  return {
    ...{ accountId, shareGroup: accountId, mode: 'live', tier: 'pro', version: 'v' },
    ...{ keyId: undefined, isTeamKey: false, providerKeys: new Map(), expiresAt: Number.POSITIVE_INFINITY },
    missingForLiveCalls: undefined,
  }
}
