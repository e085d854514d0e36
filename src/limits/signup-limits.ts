import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { clientOf, type Throttle, type ThrottleDeps, takeThrottle } from './throttle.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** Where a sign-up comes from; no network: an address that is not public. */
export interface SignupClient {
  address: string
  network: string | null
}

/**
 * Makes a sign-up; accounts are free. Counted are accounts made and addresses found to have one: an outage shuts no
 * network out. Fails open without Redis. @throws GatewayError SIGNUP_THROTTLED; what the sign-up throws
 */
export async function limitSignups<T>(
  deps: ThrottleDeps & { config: Config },
  client: SignupClient,
  signUp: () => Promise<T>,
): Promise<T> {
  const refunds: (() => void)[] = []
  try {
    for (const throttle of throttlesOf(deps.config, client)) refunds.push(await takeThrottle(deps, throttle))
    return await signUp()
  } catch (error) {
    const isCounted = error instanceof GatewayError && error.code === 'EMAIL_IN_USE'
    if (!isCounted) for (const refund of refunds) refund()
    throw error
  }
}

function throttlesOf({ throttles }: Config, { address, network }: SignupClient): Throttle[] {
  const code = 'SIGNUP_THROTTLED'
  const ofClient: Throttle = { name: 'signup', subject: clientOf(address), max: throttles.signupPerMinute, code }
  if (network === null) return [ofClient]
  return [
    ofClient,
    { name: 'signup-hour', subject: network, max: throttles.signupPerHour, windowMs: HOUR_MS, code },
    { name: 'signup-day', subject: network, max: throttles.signupPerDay, windowMs: DAY_MS, code },
  ]
}
