import type { Tier } from '../catalog/upstream.ts'
import type { PlanLimits } from '../config.ts'
import { GatewayError } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'
import { planOf } from './plans.ts'

const MINUTE_MS = 60_000

/** How long a month's count is kept after the month, so that a late refund finds it. */
const MONTH_GRACE_MS = 86_400_000

/** Longest lease of a call in flight, milliseconds; the leases' key lives as long. */
const LEASE_MS_MAX = 900_000

/** What an account has used and may use, as of one instant of Redis' clock. */
export interface LimitState {
  /** Redis time, milliseconds since the epoch. */
  now: number
  limits: PlanLimits
  minute: { used: number /** Until a unit comes back; 0 when none is used. */; resetMs: number }
  /** Absent for test keys, which have no monthly quota. */
  month: { used: number; resetMs: number } | undefined
  inFlight: number
}

/** Who is charged: the account, and apart from its live calls its test calls. */
export interface LimitSubject {
  accountId: string
  mode: 'live' | 'test'
  /** Version under which the account's rights were looked up. */
  version: string
}

/**
 * One atomic step: account version, in flight, minute, month; takes a unit of each or of none.
 * KEYS version, minute log, in-flight leases, month count. ARGV version, call id (empty: look only), perMinute,
 * inFlight, perMonth (-1: none), lease ms, when the month whose count it is begins and ends.
 */
const TAKE = new Script(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)
local verdict = 'ok'
-- A key's life is lengthened when less than what it must last is left: asking costs a fraction of telling.
local function renew(key, lifeMs)
  if redis.call('PTTL', key) < lifeMs then redis.call('PEXPIRE', key, 2 * lifeMs) end
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'stale', nowMs} end
-- What is taken is given back by this clock; a node's own may be on the other side of midnight.
if nowMs < tonumber(ARGV[7]) or nowMs >= tonumber(ARGV[8]) then return {'other-month', nowMs} end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ${MINUTE_MS}000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', nowMs)
local minute = redis.call('ZCARD', KEYS[2])
local flying = redis.call('ZCARD', KEYS[3])
local perMonth = tonumber(ARGV[5])
local month = 0
if perMonth >= 0 then
  month = redis.call('GET', KEYS[4])
  if not month then return {'month', nowMs} end
  month = tonumber(month)
end
if ARGV[2] ~= '' then
  if flying >= tonumber(ARGV[4]) then verdict = 'inFlight'
  elseif minute >= tonumber(ARGV[3]) then verdict = 'minute'
  elseif perMonth >= 0 and month >= perMonth then verdict = 'month-used'
  else
    redis.call('ZADD', KEYS[2], now, ARGV[2])
    redis.call('ZADD', KEYS[3], nowMs + tonumber(ARGV[6]), ARGV[2])
    renew(KEYS[2], ${2 * MINUTE_MS})
    renew(KEYS[3], ${LEASE_MS_MAX})
    minute = minute + 1
    flying = flying + 1
    if perMonth >= 0 then
      month = redis.call('INCR', KEYS[4])
    end
  end
end
-- A unit comes back when the oldest entry leaves the window; over a limit that was lowered, when enough have left.
local index = 0
if verdict == 'minute' then index = minute - tonumber(ARGV[3]) end
local oldest = redis.call('ZRANGE', KEYS[2], index, index, 'WITHSCORES')
local reset = 0
if oldest[2] then reset = math.ceil((tonumber(oldest[2]) + ${MINUTE_MS}000 - now) / 1000) end
return {verdict, nowMs, minute, reset, flying, month}
`)

/**
 * Gives back the in-flight leases of calls and, for those that failed on our side or the upstream's, the month's units.
 * KEYS in-flight leases, month count. ARGV of each call: id, 1 when its unit comes back. Returns how many had a lease.
 */
const SETTLE = new Script(`
local ended, refunds = 0, 0
for index = 1, #ARGV, 2 do
  if redis.call('ZREM', KEYS[1], ARGV[index]) == 1 then
    ended = ended + 1
    refunds = refunds + tonumber(ARGV[index + 1])
  end
end
if refunds > 0 then
  local used = tonumber(redis.call('GET', KEYS[2]) or 0)
  if used > 0 then redis.call('DECRBY', KEYS[2], math.min(refunds, used)) end
end
return ended
`)

/** Takes back what a call took that was refused after all: it costs nothing. */
const REFUND = new Script(`
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
if tonumber(redis.call('GET', KEYS[3]) or 0) > 0 then redis.call('DECR', KEYS[3]) end
return 1
`)

type Taken = ['stale' | 'month' | 'other-month', number] | [string, number, number, number, number, number]

export interface TakeOptions {
  /** Longest the call can be in flight; its lease ends by itself then. */
  leaseMs: number
  /** What the account has used this month, from the ledger; asked when Redis does not know. */
  loadMonthUsed: (month: string) => Promise<number>
}

/** The account's version changed since its rights were looked up. */
export const STALE = Symbol('stale')

/**
 * Takes a unit of the account's limits for a call, exactly, over any number of nodes.
 *
 * @returns what is left, or STALE when the account must be looked up again
 * @throws GatewayError CONCURRENCY_LIMIT_EXCEEDED, RATE_LIMIT_EXCEEDED or MONTHLY_QUOTA_EXCEEDED; nothing is taken
 */
export async function takeLimits(
  redis: RedisConnection,
  charged: LimitSubject,
  tier: Tier,
  limits: PlanLimits,
  callId: string,
  options: TakeOptions,
): Promise<LimitState | typeof STALE> {
  const result = await run(redis, charged, limits, callId, options)
  if (result === STALE) return STALE
  const { verdict, state } = result
  if (verdict === 'ok') return state
  throw refusal(verdict, state, tier)
}

/** What an account has left now, without taking anything; undefined when Redis cannot tell. */
export async function readLimits(
  redis: RedisConnection,
  charged: LimitSubject,
  limits: PlanLimits,
  options: TakeOptions,
): Promise<LimitState | undefined> {
  // Only headers depend on it: without Redis they are left out.
  const result = await run(redis, charged, limits, '', options).catch(() => STALE)
  return typeof result === 'symbol' ? undefined : result.state
}

async function run(
  redis: RedisConnection,
  charged: LimitSubject,
  limits: PlanLimits,
  callId: string,
  options: TakeOptions,
) {
  let at = Date.now()
  for (let tries = 0; tries < 4; tries += 1) {
    const month = monthOf(at)
    const keys = limitKeys(charged, month.name)
    const perMonth = charged.mode === 'test' ? -1 : limits.perMonth
    const monthLifeMs = month.endsAt - at + MONTH_GRACE_MS
    const amounts = [limits.perMinute, limits.inFlight, perMonth, options.leaseMs]
    const values = [charged.version, callId, ...amounts, month.startsAt, month.endsAt]
    const taken = (await TAKE.run(redis, keys, values)) as Taken
    if (taken[0] === 'stale') return STALE
    if (taken[0] === 'other-month') {
      at = taken[1]
      continue
    }
    if (taken[0] === 'month') {
      await redis.set(keys[3] ?? '', await options.loadMonthUsed(month.name), 'PX', monthLifeMs, 'NX')
      continue
    }
    const [verdict, now, minute = 0, resetMs = 0, inFlight = 0, monthUsed = 0] = taken
    const state: LimitState = {
      now,
      limits,
      minute: { used: minute, resetMs },
      month: perMonth < 0 ? undefined : { used: monthUsed, resetMs: Math.max(0, month.endsAt - now) },
      inFlight,
    }
    return { verdict, state }
  }
  throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
}

function limitKeys({ accountId, mode }: LimitSubject, month: string): string[] {
  return [
    accountKeys.version(accountId),
    accountKeys.minute(accountId, mode),
    accountKeys.inFlight(accountId, mode),
    accountKeys.month(accountId, month),
  ]
}

/** A call that has ended. */
export interface CompletedCall {
  callId: string
  status: number
}

/**
 * Ends calls of one account that were admitted in one month (`2026-11`): gives back their in-flight leases, and the
 * month's unit of each that ended in 5xx. For one that was ended before it does nothing.
 *
 * @returns how many had not been ended before
 */
export async function releaseLimits(
  redis: RedisConnection,
  { accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>,
  month: string,
  ended: CompletedCall[],
): Promise<number> {
  const calls = ended.flatMap(({ callId, status }) => [callId, status >= 500 && mode === 'live' ? 1 : 0])
  return Number(
    await SETTLE.run(redis, [accountKeys.inFlight(accountId, mode), accountKeys.month(accountId, month)], calls),
  )
}

/**
 * Gives back all that a call took at an instant; a second time does nothing.
 *
 * @returns whether it had taken anything
 */
export async function refundCall(
  redis: RedisConnection,
  charged: LimitSubject,
  callId: string,
  at: number,
): Promise<boolean> {
  const [, minute = '', inFlight = '', month = ''] = limitKeys(charged, monthOf(at).name)
  const keys = [minute, inFlight, charged.mode === 'live' ? month : `${month}:none`]
  return (await REFUND.run(redis, keys, [callId])) === 1
}

/** Gives back all that a call took: it was refused before it reached the queue. */
export async function refundLimits(
  redis: RedisConnection,
  charged: LimitSubject,
  callId: string,
  state: LimitState,
): Promise<LimitState> {
  await refundCall(redis, charged, callId, state.now)
  return {
    ...state,
    minute: {
      ...state.minute,
      used: state.minute.used - 1,
      resetMs: state.minute.used === 1 ? 0 : state.minute.resetMs,
    },
    month: state.month && { ...state.month, used: state.month.used - 1 },
    inFlight: state.inFlight - 1,
  }
}

function refusal(verdict: string, state: LimitState, tier: Tier): GatewayError {
  const upgrade = tier === 'developer' ? { upgrade_to: 'pro' } : tier === 'pro' ? { upgrade_to: 'business' } : {}
  const plan = planOf(tier)
  const { limits } = state
  switch (verdict) {
    case 'inFlight':
      return new GatewayError('CONCURRENCY_LIMIT_EXCEEDED', {
        message: `The plan ${plan} allows ${limits.inFlight} calls under way at once.`,
        tokens: { limit: limits.inFlight, ...upgrade },
        retryAfterMs: 1_000,
      })
    case 'minute':
      return new GatewayError('RATE_LIMIT_EXCEEDED', {
        message: `Rate limit exceeded: the plan ${plan} allows ${limits.perMinute} calls a minute.`,
        tokens: { limit: limits.perMinute, ...upgrade },
        retryAfterMs: state.minute.resetMs,
      })
    default:
      return new GatewayError('MONTHLY_QUOTA_EXCEEDED', {
        message: `The plan ${plan} allows ${limits.perMonth} calls a month.`,
        tokens: { limit: limits.perMonth, ...upgrade },
        retryAfterMs: state.month?.resetMs ?? 0,
      })
  }
}

/** The UTC month of an instant, `2026-11`, when it begins and when the next one does. */
export function monthOf(epochMs: number): { name: string; startsAt: number; endsAt: number } {
  const date = new Date(epochMs)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { name: date.toISOString().slice(0, 7), startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) }
}
