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

/** Wrong passwords before the first wait. */
const FREE_FAILURES = 5

/** Longest wait, milliseconds. */
const WAIT_MS_MAX = 900_000

/** The email address as it was given, and the network address of the client. */
export interface LoginAttempt {
  email: string
  address: string
}

/**
 * Makes an attempt that gives a password. After five wrong passwords of one client for one account,
 * each further attempt of this client for this account waits: 1 s, 2 s, up to a quarter of an hour.
 * The owner on another client does not wait, and neither do other accounts.
 * All failures of a client are limited too, and this limit comes first: anybody can make up email
 * addresses, and if it refuses, no key for the made-up address is left in Redis.
 * Fails open without Redis, because the limit on concurrent password hashes still slows a guesser
 * down.
 * @throws GatewayError LOGIN_THROTTLED; also what the attempt throws
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
 * Forgets the wrong passwords of a client for an account, after the client has proven whose the
 * account is, by the password or in another way.
 */
export async function forgetGuesses(deps: ThrottleDeps & { config: Config }, guess: LoginAttempt): Promise<void> {
  for (const throttle of failures(deps.config, guess)) await clearThrottle(deps, throttle)
}

/**
 * People sometimes type the password as the email address, so only a hash of the address goes into
 * a key.
 */
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
