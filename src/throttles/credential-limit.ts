import { DAY_MS, makeThrottled, type Throttle, type ThrottleDeps } from './throttle.ts'

const CREDENTIALS_PER_DAY = 200

/**
 * Makes a key or a connection of an application. Each has rows of its own in the account's usage,
 * which outlive it: the bound on live keys does not bound these. Who makes it is counted, so that
 * no admin of a team locks its owner out.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED; what `make` throws, and then nothing counts
 */
export async function limitCredentials<T>(deps: ThrottleDeps, userId: string, make: () => Promise<T>): Promise<T> {
  const throttle: Throttle = {
    name: 'credential',
    subject: userId,
    max: CREDENTIALS_PER_DAY,
    windowMs: DAY_MS,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Use the keys and connections that exist, or wait before making more',
  }
  return await makeThrottled(deps, { throttles: [throttle], counted: ['success'] }, make)
}
