import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { clientsAround } from './client-network.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

const OPERATOR_FAILURES_MAX = 30

const takeUnit = loadScript(new URL('./lua/take-throttle.lua', import.meta.url))

export interface ThrottleDeps {
  redis: RedisConnection
  log: Log
  /** Milliseconds. For tests; absent: the clock of Redis. */
  now?: () => number
}

export interface Throttle {
  name:
    | 'signup'
    | 'signup-hour'
    | 'signup-day'
    | 'login'
    | 'login-failures'
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
  /** Most units in any window; 0: no bound. */
  max: number
  /** Milliseconds. Default: one minute. */
  windowMs?: number
  /**
   * Longest wait, milliseconds. If set, each unit after `max` waits: 1 s, 2 s, 4 s and so on up to
   * this wait. All units are forgotten a window after the last unit.
   */
  waitMsMax?: number
  code: ErrorCode
  /** Set if the hint of the code does not help. */
  hint?: string
}

/** Gives a unit back, in the background. */
type Refund = () => void

/**
 * Takes a unit before the work begins, so that concurrent attempts count too.
 *
 * @returns gives the unit back
 * @throws GatewayError with the throttle's code
 */
export async function takeThrottle(deps: ThrottleDeps, throttle: Throttle): Promise<Refund> {
  const [refund = () => undefined] = await takeThrottles(deps, [throttle])
  return refund
}

/**
 * Checks the throttle without taking a unit, for work that counts only if it succeeds.
 *
 * @throws GatewayError with the throttle's code
 */
export async function checkThrottle(deps: ThrottleDeps, throttle: Throttle): Promise<void> {
  const waitMs = await take(deps, throttle, '')
  if (waitMs > 0) throw refusal(throttle, waitMs)
}

/** Forgets the units of a throttle. */
export async function clearThrottle({ redis, log }: ThrottleDeps, throttle: Throttle): Promise<void> {
  await redis
    .del(keyOf(throttle))
    .catch((error) => log.debug({ err: error, throttle: throttle.name }, 'failed to clear a throttle; its units end'))
}

/**
 * Takes a unit of each throttle, or of none if one of them refuses.
 *
 * @returns functions that give the units back, in the order of the throttles
 * @throws GatewayError with the code of the first throttle that refuses. Its Retry-After is the
 *   time until none of them refuses
 */
export async function takeThrottles(deps: ThrottleDeps, throttles: Throttle[]): Promise<Refund[]> {
  const refunds: Refund[] = []
  for (const [index, throttle] of throttles.entries()) {
    const unit = randomBytes(6).toString('base64url')
    const waitMs = await take(deps, throttle, unit)
    if (waitMs === 0) {
      refunds.push(refundOf(deps, throttle, unit))
      continue
    }
    for (const refund of refunds) refund()
    const others = await Promise.all(throttles.slice(index + 1).map((other) => take(deps, other, '')))
    throw refusal(throttle, Math.max(waitMs, ...others))
  }
  return refunds
}

function refundOf({ redis, log }: ThrottleDeps, throttle: Throttle, unit: string): Refund {
  return () => {
    if (throttle.max === 0) return
    redis
      .zrem(keyOf(throttle), unit)
      .catch((error) => log.debug({ err: error, throttle: throttle.name }, 'failed to give back a throttle unit'))
  }
}

function refusal({ code, hint }: Throttle, retryAfterMs: number): GatewayError {
  return new GatewayError(code, { retryAfterMs, ...(hint === undefined ? {} : { hint }) })
}

/** How an attempt ended: it succeeded, or it failed with this code. */
type Outcome = 'success' | ErrorCode

/**
 * Makes an attempt that takes a unit of each throttle. The units are kept if the outcome is in
 * `counted`, and given back otherwise, so an outage locks nobody out.
 *
 * @throws GatewayError with the code of the throttle that refuses; also what the attempt throws
 */
export async function makeThrottled<T>(
  deps: ThrottleDeps,
  { throttles, counted }: { throttles: Throttle[]; counted: Outcome[] },
  attempt: () => Promise<T>,
): Promise<T> {
  const refunds = await takeThrottles(deps, throttles)
  const end = (outcome: Outcome | undefined) => {
    if (outcome === undefined || !counted.includes(outcome)) for (const refund of refunds) refund()
  }
  try {
    const result = await attempt()
    end('success')
    return result
  } catch (error) {
    end(error instanceof GatewayError ? error.code : undefined)
    throw error
  }
}

const keyOf = ({ name, subject }: Throttle): string => keys.throttle(name, subject)

/**
 * Takes a unit of a throttle.
 *
 * @param unit empty: none is taken
 * @returns 0 if the unit is or could be taken; otherwise the milliseconds until it can be
 */
async function take({ redis, log, now }: ThrottleDeps, throttle: Throttle, unit: string): Promise<number> {
  const { name, max, windowMs = MINUTE_MS, waitMsMax = 0 } = throttle
  if (max === 0) return 0
  try {
    const values = [now?.() ?? '', max, unit, windowMs, waitMsMax]
    return Number(await takeUnit.run(redis, [keyOf(throttle)], values))
  } catch (error) {
    // Fails open, because accounts must work without Redis. The limit on concurrent password hashes
    // still slows a guesser down.
    log.warn({ err: error, throttle: name }, 'failed to count a throttle; the attempt is let through')
    return 0
  }
}

/** Correct passwords per minute of one account, at log-in and when the password changes. */
const RIGHT_PASSWORDS_PER_MINUTE = 10

/**
 * Limits correct passwords, which cost a hash or two each. Wrong passwords take none of these
 * units, so nobody can lock the owner out.
 */
export function accountThrottle(
  name: 'login-account' | 'password-change',
  config: Config,
  accountId: string,
): Throttle {
  const max = config.throttles.loginFailuresPerMinute === 0 ? 0 : RIGHT_PASSWORDS_PER_MINUTE
  return { name, subject: accountId, max, code: 'LOGIN_THROTTLED' }
}

/**
 * A throttle for each network around a client address, the narrowest first, because an owner of a
 * whole network has many clients. `of` names the target of the client's attempts.
 */
export function throttlesOfClient(address: string, { max, of, ...throttle }: ClientThrottle): Throttle[] {
  return clientsAround(address).map(({ name, clients }) => ({
    ...throttle,
    subject: of === undefined ? name : `${of}:${name}`,
    max: clients * max,
  }))
}

type ClientThrottle = Omit<Throttle, 'subject'> & { of?: string }

/** Throttles of guessed passwords, on every route that accepts a password. */
export function passwordThrottles(config: Config, address: string): Throttle[] {
  return throttlesOfClient(address, {
    name: 'login',
    max: config.throttles.loginFailuresPerMinute,
    code: 'LOGIN_THROTTLED',
  })
}

/** Throttles of wrong operator tokens. The correct token does not count and is never refused. */
export function operatorThrottles(address: string): Throttle[] {
  return throttlesOfClient(address, { name: 'operator', max: OPERATOR_FAILURES_MAX, code: 'LOGIN_THROTTLED' })
}
