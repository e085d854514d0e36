import { randomUUID } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'

const MINUTE_MS = 60_000

/** KEYS log. ARGV max, unit. Answers 0 when the unit is taken, else milliseconds until the oldest leaves the window. */
const TAKE = new Script(`
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${MINUTE_MS})
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
  return math.max(1, redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] + ${MINUTE_MS} - now)
end
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('PEXPIRE', KEYS[1], ${MINUTE_MS})
return 0
`)

/** What is bounded, whom it is counted for, and what the caller over it is told. */
export interface Throttle {
  name: 'signup' | 'login' | 'member-add' | 'key-validate'
  subject: string
  /** Units in any 60 seconds; 0 is no bound. */
  perMinute: number
  code: ErrorCode
}

/**
 * Takes a unit of a throttle, exactly, over all nodes. It is taken before the work, so that attempts made at once are
 * counted too.
 *
 * @returns how to give the unit back, for an attempt that is not to count
 * @throws GatewayError with the throttle's code
 */
export async function takeThrottle(
  { redis, log }: { redis: RedisConnection; log: Log },
  { name, subject, perMinute, code }: Throttle,
): Promise<() => void> {
  if (perMinute === 0) return () => undefined
  const key = keys.throttle(name, subject)
  const unit = randomUUID()
  let waitMs: number
  try {
    waitMs = Number(await TAKE.run(redis, [key], [perMinute, unit]))
  } catch (error) {
    // Fails open: accounts must work while Redis is away, and the bounded password hashing still limits a guesser.
    log.warn({ err: error, throttle: name }, 'throttle not counted')
    return () => undefined
  }
  if (waitMs > 0) throw new GatewayError(code, { retryAfterMs: waitMs })
  return () => {
    redis.zrem(key, unit).catch((error) => log.debug({ err: error, throttle: name }, 'throttle unit not given back'))
  }
}

/**
 * Makes an attempt under a throttle that counts failures: the unit is kept when the attempt fails with `counted`, and
 * given back however else it ends. An outage must not lock those out who try again.
 *
 * @throws GatewayError with the throttle's code; what the attempt throws
 */
export async function throttleFailures<T>(
  sources: { redis: RedisConnection; log: Log },
  throttle: Throttle,
  counted: ErrorCode,
  attempt: () => Promise<T>,
): Promise<T> {
  const giveBack = await takeThrottle(sources, throttle)
  try {
    const result = await attempt()
    giveBack()
    return result
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== counted) giveBack()
    throw error
  }
}

/** The throttle of guessed passwords, wherever one is asked for. */
export function passwordThrottle(config: Config, address: string): Throttle {
  return {
    name: 'login',
    subject: clientOf(address),
    perMinute: config.throttles.loginFailuresPerMinute,
    code: 'LOGIN_THROTTLED',
  }
}

/**
 * The client an address stands for: an IPv4 address as it is, an IPv6 one by its /64, of which one subscriber has all.
 * Throttles count by client and never by account alone: nobody can lock an owner out who comes from another address.
 */
export function clientOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${parsed.toByteArray().slice(0, 8).join('.')}/64`
}
