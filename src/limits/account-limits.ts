import { TickBatcher } from '../async/tick-batcher.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { CallLimits } from '../config.ts'
import { GatewayError } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript, type Script, type ScriptConstants } from '../redis/script.ts'
import { limitRefusal } from './limit-refusal.ts'
import { monthOf } from './month.ts'

export const MINUTE_MS = 60_000

/** A month's count outlives the month, so that a late refund finds it. */
const MONTH_GRACE_MS = 86_400_000

/** No lease is longer, milliseconds: their key lives at least as long. */
export const LEASE_MS_MAX = 900_000

/** What an account has used and may use. */
export interface LimitState {
  /** Redis time, milliseconds. */
  now: number
  plan: CallLimits
  /** Of the last 60 s. `resetMs`: until a unit comes back; 0 when none is used. */
  minute: { used: number; resetMs: number }
  /** Absent for test calls. */
  month: { used: number; resetMs: number } | undefined
  inFlight: number
  /** The application's own month, where it has a bound. */
  application: { used: number; perMonth: number } | undefined
}

/** Live and test calls are counted apart. */
export interface LimitSubject {
  accountId: string
  mode: 'live' | 'test'
  version: string
  /** The application that calls for the account; `perMonth` is null where it has no bound of its own. */
  connection?: { id: string; perMonth: number | null } | undefined
}

/** For a reading whose account is looked up with each request. */
export const ANY_VERSION = 'any'

const load = (name: string, constants: ScriptConstants = {}) =>
  loadScript(new URL(`./lua/${name}.lua`, import.meta.url), constants)

const scripts = {
  acquire: load('acquire-limits', { MINUTE_MS, LEASE_MS_MAX, ANY_VERSION }),
}

type ScriptReply =
  | [undecided: 'stale' | 'other-month' | 'no-month-count' | 'no-application-count', now: number]
  | [
      decision: string,
      ...[
        now: number,
        minuteUsed: number,
        resetMs: number,
        inFlight: number,
        monthUsed: number,
        applicationUsed: number,
      ],
      ...further: (number | string)[],
    ]

export interface LimitRequest extends LimitQuery {
  tier: Tier
  callId: string
}

export interface LimitQuery {
  subject: LimitSubject
  plan: CallLimits
  leaseMs: number
  /** From the ledger; called when Redis has no count. */
  loadMonthUsed: (month: string) => Promise<number>
  loadApplicationUsed?: ((month: string) => Promise<number>) | undefined
  /** For tests; Redis' own clock where absent. */
  now?: (() => number) | undefined
}

export const STALE = Symbol('stale')

const CALLS_TOGETHER_MAX = 64

type LimitOutcome = { decision: string; state: LimitState } | typeof STALE

/** The limits of accounts, for an API node: calls of one account in one tick are one script. */
export class AccountLimits {
  readonly #acquisitions: TickBatcher<LimitRequest, LimitOutcome>
  readonly #readings: TickBatcher<LimitQuery, LimitState | typeof STALE>

  constructor(redis: RedisConnection) {
    this.#acquisitions = new TickBatcher((_key, requests) => acquireTogether(redis, requests), {
      itemsMax: CALLS_TOGETHER_MAX,
    })
    this.#readings = new TickBatcher((_key, queries) => readTogether(redis, queries), { itemsMax: CALLS_TOGETHER_MAX })
  }

  /**
   * Takes a unit of each limit, exactly, over any number of nodes.
   * @returns STALE when the account must be looked up again
   * @throws GatewayError CONCURRENCY_LIMIT_EXCEEDED, RATE_LIMIT_EXCEEDED or MONTHLY_QUOTA_EXCEEDED; nothing is taken
   */
  async acquire(request: LimitRequest): Promise<LimitState | typeof STALE> {
    const outcome = await this.#acquisitions.add(sameLimitsKey(request), request)
    if (outcome === STALE) return STALE
    if (outcome.decision === 'ok') return outcome.state
    throw limitRefusal(outcome.decision, outcome.state, request)
  }

  /** Takes nothing. @returns STALE when the account must be looked up again @throws what Redis and Postgres throw */
  async read(query: LimitQuery): Promise<LimitState | typeof STALE> {
    return await this.#readings.add(sameLimitsKey(query), query)
  }
}

/** Equal for requests that one script can answer. */
function sameLimitsKey({ subject, plan, leaseMs }: LimitQuery): string {
  const { accountId, mode, version, connection } = subject
  const bounds = [plan.perMinute, plan.perMonth, plan.inFlight, leaseMs, connection?.id, connection?.perMonth]
  return `${accountId} ${mode} ${version} ${bounds.join(' ')}`
}

async function readTogether(redis: RedisConnection, queries: LimitQuery[]): Promise<(LimitState | typeof STALE)[]> {
  const [first] = queries
  if (!first) return []
  const result = await runInMonth(redis, first, { callId: '' })
  const outcome = result === STALE ? STALE : result.state
  return queries.map(() => outcome)
}

/** Decides on calls of one account in their order, in one step; all have the same bounds. */
export async function acquireTogether(redis: RedisConnection, requests: LimitRequest[]): Promise<LimitOutcome[]> {
  const [first, ...others] = requests
  if (!first) return []
  const more = others.map(({ callId }) => callId)
  const result = await runInMonth(redis, first, { callId: first.callId, more })
  if (result === STALE) return requests.map(() => STALE)
  const { decision, state, further } = result
  const outcomes: LimitOutcome[] = [{ decision, state }]
  for (let index = 0; index < others.length; index += 1) {
    const [itsDecision, used, inFlight, monthUsed, applicationUsed] = further.slice(5 * index, 5 * index + 5)
    const month = state.month && { ...state.month, used: Number(monthUsed) }
    const minute = { ...state.minute, used: Number(used) }
    const application = state.application && { ...state.application, used: Number(applicationUsed) }
    const own = { ...state, minute, month, inFlight: Number(inFlight), application }
    outcomes.push({ decision: String(itsDecision), state: own })
  }
  return outcomes
}

/** As `AccountLimits.read`, for headers alone: undefined where it cannot be told, or the version is outdated. */
export async function readLimits(redis: RedisConnection, query: LimitQuery): Promise<LimitState | undefined> {
  const result = await runInMonth(redis, query, { callId: '' }).catch(() => undefined)
  return result === STALE ? undefined : result?.state
}

/** One each for the right month, the month's count, the application's count and the decision. */
const COUNT_TRIES_MAX = 4

/** Runs a script until it finds its counts, in the month of Redis' clock. @returns STALE for an outdated version */
export async function runInMonth(
  redis: RedisConnection,
  query: LimitQuery,
  { callId, script = scripts.acquire, more = [] }: { callId: string; script?: Script; more?: string[] },
) {
  const { subject, plan, leaseMs, loadMonthUsed, loadApplicationUsed, now: clock } = query
  let at = clock?.() ?? Date.now()
  for (let tries = 0; tries < COUNT_TRIES_MAX; tries += 1) {
    const month = monthOf(at)
    const keys = limitKeys(subject, month.name)
    const perMonth = subject.mode === 'test' ? -1 : plan.perMonth
    const amounts = [plan.perMinute, plan.inFlight, perMonth, leaseMs]
    const times = [month.startsAt, month.endsAt]
    const values = [clock?.() ?? '', subject.version, callId, ...amounts, ...times, boundOf(subject) ?? -1]
    const reply = (await script.run(redis, keys, [...values, ...more])) as ScriptReply
    if (reply[0] === 'stale') return STALE
    if (reply[0] === 'other-month') {
      at = reply[1]
      continue
    }
    const [, , , monthKey = '', connectionKey = ''] = keys
    const countLifeMs = month.endsAt - at + MONTH_GRACE_MS
    if (reply[0] === 'no-month-count') {
      await redis.set(monthKey, await loadMonthUsed(month.name), 'PX', countLifeMs, 'NX')
      continue
    }
    if (reply[0] === 'no-application-count') {
      await redis.set(connectionKey, (await loadApplicationUsed?.(month.name)) ?? 0, 'PX', countLifeMs, 'NX')
      continue
    }
    const [decision, now, minute = 0, resetMs = 0, inFlight = 0, monthUsed = 0, applicationUsed = 0, ...further] = reply
    const bound = boundOf(subject)
    const state: LimitState = {
      now,
      plan,
      minute: { used: minute, resetMs },
      month: perMonth < 0 ? undefined : { used: monthUsed, resetMs: Math.max(0, month.endsAt - now) },
      inFlight,
      application: bound === undefined ? undefined : { used: applicationUsed, perMonth: bound },
    }
    return { decision, state, further }
  }
  throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
}

function boundOf({ connection }: LimitSubject): number | undefined {
  return connection?.perMonth ?? undefined
}

/** Version, minute, in flight, month, and the application's month where it has a bound. */
export function limitKeys(subject: LimitSubject, month: string): string[] {
  const { accountId, mode, connection } = subject
  const isBounded = connection && boundOf(subject) !== undefined
  return [
    accountKeys.version(accountId),
    accountKeys.minute(accountId, mode),
    accountKeys.inFlight(accountId, mode),
    accountKeys.month(accountId, month),
    ...(isBounded ? [accountKeys.connectionMonth(accountId, connection.id, month)] : []),
  ]
}

/** What an account has left once the month's unit of a call that failed is given back. */
export function withoutMonthUnit(state: LimitState): LimitState {
  const { month, application } = state
  return {
    ...state,
    month: month && { ...month, used: month.used - 1 },
    application: application && { ...application, used: application.used - 1 },
  }
}

/** What an account has left once a call that it had acquired is given back. */
export function withoutCall(state: LimitState): LimitState {
  return {
    ...withoutMonthUnit(state),
    minute: {
      ...state.minute,
      used: state.minute.used - 1,
      resetMs: state.minute.used === 1 ? 0 : state.minute.resetMs,
    },
    inFlight: state.inFlight - 1,
  }
}
