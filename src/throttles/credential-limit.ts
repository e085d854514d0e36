import { DAY_MS, makeThrottled, type Throttle, type ThrottleDeps } from './throttle.ts'

const CREDENTIALS_PER_DAY = 200

/**
 * Makes a key or a connection, and limits how many an account makes. Each has its own rows in the
 * account's usage, which remain after its end, so the limit on live keys does not limit these rows.
 * The maker is counted, not the owner, so that an admin of a team cannot lock its owner out.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED; also what `make` throws, in which case nothing counts
 */
export async function limitCredentials<T>(deps: ThrottleDeps, userId: string, make: () => Promise<T>): Promise<T> {
  const throttle: Throttle = {
    name: 'credential',
    subject: userId,
    max: CREDENTIALS_PER_DAY,
    windowMs: DAY_MS,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Use the keys and connections that you have, or wait before you make more',
  }
  return await makeThrottled(deps, { throttles: [throttle], counted: ['success'] }, make)
}
