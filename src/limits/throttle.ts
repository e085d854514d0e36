import { randomUUID } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'

const MINUTE_MS = 60_000

/** Wrong operator tokens of one client a minute. */
const OPERATOR_FAILURES_MAX = 30

const takeUnit = loadScript(new URL('./lua/take-throttle.lua', import.meta.url))

export interface ThrottleDeps {
  redis: RedisConnection
  log: Log
  /** The clock, for tests; Redis' own where absent. Milliseconds. */
  now?: () => number
}

/** What is bounded, for whom, and the error of a caller over the bound. */
export interface Throttle {
  name:
    | 'signup'
    | 'signup-hour'
    | 'signup-day'
    | 'login'
    | 'login-account'
    | 'password-change'
    | 'member-add'
    | 'member-unknown'
    | 'key-validate'
    | 'client-register'
    | 'client-document'
    | 'mail'
    | 'operator'
  subject: string
  /** Units in any window; 0 is no bound. */
  max: number
  /** Length of the window, milliseconds. Default: a minute. */
  windowMs?: number
  code: ErrorCode
  /** Next action, where the code's own does not help. */
  hint?: string
}

/**
 * Takes a unit of a throttle, exactly, over all nodes. It is taken before the work, so that attempts made at once are
 * counted too.
 *
 * @returns how to give the unit back, for an attempt that is not to count
 * @throws GatewayError with the throttle's code
 */
export async function takeThrottle(
  { redis, log, now }: ThrottleDeps,
  { name, subject, max, windowMs = MINUTE_MS, code, hint }: Throttle,
): Promise<() => void> {
  if (max === 0) return () => undefined
  const key = keys.throttle(name, subject)
  const unit = randomUUID()
  let waitMs: number
  try {
    waitMs = Number(await takeUnit.run(redis, [key], [now?.() ?? '', max, unit, windowMs]))
  } catch (error) {
    // Fails open: accounts must work while Redis is away, and the bounded password hashing still limits a guesser.
    log.warn({ err: error, throttle: name }, 'failed to count a throttle; the attempt is let through')
    return () => undefined
  }
  if (waitMs > 0) throw new GatewayError(code, { retryAfterMs: waitMs, ...(hint === undefined ? {} : { hint }) })
  return () => {
    redis
      .zrem(key, unit)
      .catch((error) => log.debug({ err: error, throttle: name }, 'failed to give back a throttle unit'))
  }
}

/**
 * Makes an attempt under a throttle that counts failures: the unit is kept when the attempt fails with `counted`, and
 * given back however else it ends. An outage must not lock those out who try again.
 *
 * @throws GatewayError with the throttle's code; what the attempt throws
 */
export async function throttleFailures<T>(
  deps: ThrottleDeps,
  { counted, ...throttle }: Throttle & { counted: ErrorCode },
  attempt: () => Promise<T>,
): Promise<T> {
  const refund = await takeThrottle(deps, throttle)
  try {
    const result = await attempt()
    refund()
    return result
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== counted) refund()
    throw error
  }
}

/**
 * Refuses where a throttle has no unit left, and takes none: for work that is taken into account only when it went well.
 *
 * @throws GatewayError with the throttle's code
 */
export async function checkThrottle({ redis, log, now }: ThrottleDeps, throttle: Throttle): Promise<void> {
  const { name, subject, max, windowMs = MINUTE_MS, code } = throttle
  if (max === 0) return
  let waitMs = 0
  try {
    waitMs = Number(await takeUnit.run(redis, [keys.throttle(name, subject)], [now?.() ?? '', max, '', windowMs]))
  } catch (error) {
    // Fails open, as `takeThrottle`.
    log.warn({ err: error, throttle: name }, 'failed to look at a throttle; the attempt is let through')
  }
  if (waitMs > 0) throw new GatewayError(code, { retryAfterMs: waitMs })
}

/** Good log-ins of one account, and changes of its password, in a minute. */
const RIGHT_PASSWORDS_PER_MINUTE = 10

/**
 * The throttle of right passwords: each costs a hash or two. A wrong password takes nothing of it, so nobody shuts out the
 * owner. Off where log-ins are not throttled at all.
 */
export function accountThrottle(
  name: 'login-account' | 'password-change',
  config: Config,
  accountId: string,
): Throttle {
  const max = config.throttles.loginFailuresPerMinute === 0 ? 0 : RIGHT_PASSWORDS_PER_MINUTE
  return { name, subject: accountId, max, code: 'LOGIN_THROTTLED' }
}

/** The throttle of guessed passwords, wherever one is asked for. */
export function passwordThrottle(config: Config, address: string): Throttle {
  return {
    name: 'login',
    subject: clientOf(address),
    max: config.throttles.loginFailuresPerMinute,
    code: 'LOGIN_THROTTLED',
  }
}

/** The throttle of guessed operator tokens; only wrong ones are counted, so that the right one is never refused. */
export function operatorThrottle(address: string): Throttle {
  return { name: 'operator', subject: clientOf(address), max: OPERATOR_FAILURES_MAX, code: 'LOGIN_THROTTLED' }
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
