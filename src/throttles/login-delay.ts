import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { comparableEmail } from '../db/email-address.ts'
import {
  clearThrottle,
  HOUR_MS,
  makeThrottled,
  passwordThrottles,
  type Throttle,
  type ThrottleDeps,
  throttlesOfClient,
} from './throttle.ts'

/** Wrong passwords without a wait. */
const FREE_FAILURES = 5

/** Milliseconds. */
const WAIT_MS_MAX = 900_000

/** The address as it was given, and the address of the client's network. */
export interface LoginAttempt {
  email: string
  address: string
}

/**
 * Makes an attempt that gives a password. After five wrong passwords of one client for one account
 * each further attempt waits: 1 s, 2 s, up to a quarter of an hour. Neither the owner elsewhere nor
 * other accounts wait. All failures of a client are bounded too, and first: anybody may make up
 * addresses, and a refusal there leaves no key for an address. Fails open without Redis: bounded
 * password hashing still limits a guesser.
 * @throws GatewayError LOGIN_THROTTLED; what the attempt throws
 */
export async function limitGuesses<T>(
  deps: ThrottleDeps & { config: Config },
  guess: LoginAttempt,
  attempt: () => Promise<T>,
): Promise<T> {
  const throttles = [...passwordThrottles(deps.config, guess.address), ...failures(deps.config, guess)]
  const result = await makeThrottled(deps, { throttles, counted: ['INVALID_CREDENTIALS'] }, attempt)
  await forgetGuesses(deps, guess)
  return result
}

/**
 * Forgets the wrong passwords of a client for an account: it has proven whose the account is, by
 * the password or in another way.
 */
export async function forgetGuesses(deps: ThrottleDeps & { config: Config }, guess: LoginAttempt): Promise<void> {
  for (const throttle of failures(deps.config, guess)) await clearThrottle(deps, throttle)
}

/** A password may be typed as the address: only its hash goes into a key. */
function failures(config: Config, { email, address }: LoginAttempt): Throttle[] {
  const account = createHash('sha256').update(comparableEmail(email)).digest('base64url').slice(0, 22)
  return throttlesOfClient(address, {
    name: 'login-failures',
    of: account,
    max: config.throttles.loginFailuresPerMinute === 0 ? 0 : FREE_FAILURES,
    windowMs: HOUR_MS,
    waitMsMax: WAIT_MS_MAX,
    code: 'LOGIN_THROTTLED',
  })
}
