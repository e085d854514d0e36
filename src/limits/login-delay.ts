import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { clientOf, type ThrottleDeps } from './throttle.ts'

/** Wrong passwords without a wait. */
const FREE_FAILURES = 5

/** Also how long failures are remembered after the last, milliseconds. */
const WAIT_MS_MAX = 900_000
const REMEMBERED_MS = 3_600_000

const takeLogin = loadScript(new URL('./lua/take-login.lua', import.meta.url))

/** `email` as it was given; the client's network address. */
export interface LoginAttempt {
  email: string
  address: string
}

/**
 * Makes an attempt to log in. After five wrong passwords of one client for one account each further attempt waits: 1 s,
 * 2 s, up to a quarter of an hour. Neither the owner elsewhere nor other accounts wait. Fails open without Redis:
 * bounded password hashing still limits a guesser.
 * @throws GatewayError LOGIN_THROTTLED; what the attempt throws
 */
export async function delayFailures<T>(
  { config, redis, log, now }: ThrottleDeps & { config: Config },
  { email, address }: LoginAttempt,
  attempt: () => Promise<T>,
): Promise<T> {
  if (config.throttles.loginFailuresPerMinute === 0) return await attempt()
  // A password may be typed as the address: only its hash goes into a key.
  const account = createHash('sha256').update(email.toLowerCase()).digest('base64url').slice(0, 22)
  const key = keys.loginFailures(account, clientOf(address))
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
    if (!isWrong) await correct(() => giveBack(redis, key))
    throw error
  }
}

/** A good log-in may have deleted the count meanwhile: what this made anew would have no end. */
async function giveBack(redis: RedisConnection, key: string): Promise<number> {
  const left = await redis.hincrby(key, 'count', -1)
  return left < 0 ? await redis.del(key) : left
}
