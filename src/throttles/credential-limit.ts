import { type ThrottleDeps, takeThrottle } from './throttle.ts'

const CREDENTIALS_PER_DAY = 200

/**
 * Makes a key or a connection of an application. Each has rows of its own in the account's usage,
 * which outlive it: the bound on live keys does not bound these. Who makes it is counted, so that
 * no admin of a team locks its owner out.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED; what `make` throws, and then nothing counts
 */
export async function limitCredentials<T>(deps: ThrottleDeps, userId: string, make: () => Promise<T>): Promise<T> {
  const refund = await takeThrottle(deps, {
    name: 'credential',
    subject: userId,
    max: CREDENTIALS_PER_DAY,
    windowMs: 86_400_000,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Use the keys and connections that exist, or wait before making more',
  })
  try {
    return await make()
  } catch (error) {
    refund()
    throw error
  }
}
