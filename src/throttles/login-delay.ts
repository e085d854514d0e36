import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { comparableEmail } from '../db/email-address.ts'
import { GatewayError } from '../errors.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { clientOf } from './client-network.ts'
import { passwordThrottle, type ThrottleDeps, throttleFailures } from './throttle.ts'

/** Wrong passwords without a wait. */
const FREE_FAILURES = 5

/** Also how long failures are remembered after the last, milliseconds. */
const WAIT_MS_MAX = 900_000
const REMEMBERED_MS = 3_600_000

const takeLogin = loadScript(new URL('./lua/take-login.lua', import.meta.url))
const giveBackLogin = loadScript(new URL('./lua/give-back-login.lua', import.meta.url))

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
  const throttle = passwordThrottle(deps.config, guess.address)
  return await throttleFailures(deps, { ...throttle, counted: 'INVALID_CREDENTIALS' }, () =>
    delayFailures(deps, guess, attempt),
  )
}

/**
 * Forgets the wrong passwords of a client for an account: it has proven in another way whose the
 * account is.
 */
export async function forgetGuesses({ redis, log }: ThrottleDeps, guess: LoginAttempt): Promise<void> {
  await redis
    .del(failuresKey(guess))
    .catch((error) => log.debug({ err: error }, 'failed to forget wrong passwords; they are forgotten after an hour'))
}

/** A password may be typed as the address: only its hash goes into a key. */
function failuresKey({ email, address }: LoginAttempt): string {
  const account = createHash('sha256').update(comparableEmail(email)).digest('base64url').slice(0, 22)
  return keys.loginFailures(account, clientOf(address))
}

async function delayFailures<T>(
  { config, redis, log, now }: ThrottleDeps & { config: Config },
  { email, address }: LoginAttempt,
  attempt: () => Promise<T>,
): Promise<T> {
  if (config.throttles.loginFailuresPerMinute === 0) return await attempt()
  const key = failuresKey({ email, address })
  let waitMs = 0
  try {
    waitMs = Number(await takeLogin.run(redis, [key], [now?.() ?? '', FREE_FAILURES, WAIT_MS_MAX, REMEMBERED_MS]))
  } catch (error) {
    log.warn({ err: error }, 'failed to count a log-in; it is let through')
  }
  if (waitMs > 0) throw new GatewayError('LOGIN_THROTTLED', { retryAfterMs: waitMs })
  const correct = (command: () => Promise<number>) =>
    command().catch((error) => log.debug({ err: error }, 'failed to correct the count of wrong passwords'))
  try {
    const result = await attempt()
    await correct(() => redis.del(key))
    return result
  } catch (error) {
    // An outage is no wrong password.
    const isWrong = error instanceof GatewayError && error.code === 'INVALID_CREDENTIALS'
    if (!isWrong) await correct(async () => Number(await giveBackLogin.run(redis, [key], [])))
    throw error
  }
}
