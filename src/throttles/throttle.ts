import { randomUUID } from 'node:crypto'
import type { Config } from '../config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { clientOf } from './client-network.ts'

const MINUTE_MS = 60_000

const OPERATOR_FAILURES_MAX = 30

const takeUnit = loadScript(new URL('./lua/take-throttle.lua', import.meta.url))

export interface ThrottleDeps {
  redis: RedisConnection
  log: Log
  /** For tests; Redis' own clock if absent. Milliseconds. */
  now?: () => number
}

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
    | 'credential'
    | 'client-register'
    | 'client-register-day'
    | 'client-document'
    | 'refresh'
    | 'mail'
    | 'mail-attempt'
    | 'reset'
    | 'export'
    | 'operator'
  subject: string
  /** In any window; 0: no bound. */
  max: number
  /** Milliseconds. Default: a minute. */
  windowMs?: number
  code: ErrorCode
  /** Set if the code's own hint does not help. */
  hint?: string
}

/**
 * Before the work, so that concurrent attempts count too.
 *
 * @returns refunds the unit
 * @throws GatewayError
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
    // Fails open: accounts must work without Redis, and bounded password hashing still limits a
    // guesser.
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
 * An attempt that fails with `counted` keeps its unit; an outage locks nobody out.
 *
 * @throws GatewayError
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
 * Takes no unit: for work that is counted only when it went well.
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
    log.warn({ err: error, throttle: name }, 'failed to read a throttle; the attempt is let through')
  }
  if (waitMs > 0) throw new GatewayError(code, { retryAfterMs: waitMs })
}

/** Good log-ins and changes of the password of one account. */
const RIGHT_PASSWORDS_PER_MINUTE = 10

/**
 * Right passwords cost a hash or two; wrong passwords take nothing of it, so nobody shuts out the
 * owner.
 */
export function accountThrottle(
  name: 'login-account' | 'password-change',
  config: Config,
  accountId: string,
): Throttle {
  const max = config.throttles.loginFailuresPerMinute === 0 ? 0 : RIGHT_PASSWORDS_PER_MINUTE
  return { name, subject: accountId, max, code: 'LOGIN_THROTTLED' }
}

/** Guessed passwords, wherever one is given. */
export function passwordThrottle(config: Config, address: string): Throttle {
  return {
    name: 'login',
    subject: clientOf(address),
    max: config.throttles.loginFailuresPerMinute,
    code: 'LOGIN_THROTTLED',
  }
}

/** Only wrong tokens count, so that the right token is never refused. */
export function operatorThrottle(address: string): Throttle {
  return { name: 'operator', subject: clientOf(address), max: OPERATOR_FAILURES_MAX, code: 'LOGIN_THROTTLED' }
}
