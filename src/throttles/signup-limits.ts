import type { Config } from '../config.ts'
import { type Network, networksAround } from './client-network.ts'
import { DAY_MS, HOUR_MS, makeThrottled, type Throttle, type ThrottleDeps, throttlesOfClient } from './throttle.ts'

/** Where a sign-up comes from. The network is null if the address is not public. */
export interface SignupClient {
  address: string
  network: string | null
}

/**
 * Makes a sign-up under limits, because accounts are free. Two outcomes count: an account was made,
 * or the address already had an account. Failures of other kinds do not count, so an outage shuts
 * no network out. Fails open without Redis.
 *
 * @throws GatewayError SIGNUP_THROTTLED; what the sign-up throws
 */
export async function limitSignups<T>(
  deps: ThrottleDeps & { config: Config },
  client: SignupClient,
  signUp: () => Promise<T>,
): Promise<T> {
  const throttles = throttlesOf(deps.config, client)
  return await makeThrottled(deps, { throttles, counted: ['success', 'EMAIL_IN_USE'] }, signUp)
}

function throttlesOf({ throttles }: Config, { address, network }: SignupClient): Throttle[] {
  const code = 'SIGNUP_THROTTLED'
  const ofClient = throttlesOfClient(address, { name: 'signup', max: throttles.signupPerMinute, code })
  if (network === null) return ofClient
  // The narrowest network comes first, because it is the first to be full.
  const ofNetworks = networksAround(network)
    .reverse()
    .flatMap((around): Throttle[] => {
      const subscribers = SUBSCRIBERS[around.kind][around.prefix] ?? 1
      const [perHour, perDay] = [subscribers * throttles.signupPerHour, subscribers * throttles.signupPerDay]
      return [
        { name: 'signup-hour', subject: around.name, max: perHour, windowMs: HOUR_MS, code },
        { name: 'signup-day', subject: around.name, max: perDay, windowMs: DAY_MS, code },
      ]
    })
  return [...ofClient, ...ofNetworks]
}

/**
 * The number of subscribers as which a network counts, by the length of its prefix. With the
 * default of five, a /48 may make twenty sign-ups an hour.
 */
const SUBSCRIBERS: Record<Network['kind'], Record<number, number>> = {
  ipv4: { 24: 8, 32: 1 },
  ipv6: { 32: 20, 48: 4, 56: 1, 64: 1 },
}
