import { Batcher, type Items } from '../async/batcher.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { CallLimits } from '../config.ts'
import { GatewayError, StacklessError } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { limitRefusal } from './limit-refusal.ts'
import { boundsOf, type CredentialLimits, countedCredential, credentialState, type LimitState } from './limit-state.ts'
import { monthOf } from './month.ts'

const MINUTE_MS = 60_000

/** How long a month's count is kept after the month, so that a late refund still finds it. */
const MONTH_GRACE_MS = 86_400_000

/**
 * The longest lease, milliseconds. The key that holds an account's leases lives at least as long.
 */
export const LEASE_MS_MAX = 900_000

/** Live and test calls are counted apart. */
export interface LimitSubject {
  accountId: string
  mode: 'live' | 'test'
  version: string
  /**
   * The owner's restrictions of the key or the connection. Absent for a session, and if there are
   * none. If they limit no calls, nothing is counted for the credential.
   */
  allowance?: CredentialLimits | undefined
  /** Set if an application makes the call, so that refusals speak of the application. */
  connection?: object | undefined
}

/**
 * Set for a reading, which looks its account up with each request: the script then compares no
 * version.
 */
export const ANY_VERSION = 'any'

/**
 * Most calls in flight whose expected ends are compared, to say in a refusal when the first call
 * will end.
 */
const LEASES_READ_MAX = 500

const acquireScript = loadScript(new URL('./lua/acquire.lua', import.meta.url), {
  MINUTE_MS,
  LEASE_MS_MAX,
  ANY_VERSION,
  LEASES_READ_MAX,
})

type ScriptReply =
  | [undecided: 'stale' | 'other-month' | 'no-month-count' | 'no-credential-count', now: number]
  | [decision: string, now: number, granted: number, leases: number, waitMs: number, ...used: number[]]

export interface LimitRequest extends LimitQuery {
  callId: string
}

/** The calls of a batch. */
interface BatchRequest extends LimitQuery {
  callIds: string[]
  /** `all`: all calls must fit. `fit`: as many calls as fit get units. */
  take: 'all' | 'fit'
}

export interface BatchGrant {
  state: LimitState
  /** The number of calls that have their units, counted from the first call. */
  granted: number
  /** How many of these calls may be in flight now, counted from the first call. */
  leases: number
  /**
   * The limit that refuses the other calls, in the form for `limitRefusal`; `ok` if all calls have
   * their units.
   */
  refusedBy: string
}

export interface LimitQuery {
  subject: LimitSubject
  tier: Tier
  plan: CallLimits
  leaseMs: number
  /**
   * Reads the month's usage of the account, or of one of its credentials, from the ledger. Called
   * if Redis has no count.
   */
  loadUsed: (month: string, credentialId?: string) => Promise<number>
  /** The clock, for tests; absent: the clock of Redis. */
  now?: (() => number) | undefined
}

/**
 * The account has changed since its rights were looked up. Nothing was taken; look it up again.
 */
export class StaleRightsError extends StacklessError {
  override readonly name = 'StaleRightsError'

  constructor() {
    super('the rights of the account have changed')
  }
}

const CALLS_TOGETHER_MAX = 64

/** The result for one call, or for a reading. */
interface LimitOutcome {
  decision: string
  state: LimitState
}

/**
 * The limits of accounts, for an API node. Calls of one account that arrive in the same tick and
 * have equal limits share one run of the script. Readings share another run.
 */
export class AccountLimits {
  readonly #redis: RedisConnection
  readonly #requests: Batcher<LimitQuery & { callId?: string }, LimitOutcome>

  constructor(redis: RedisConnection) {
    this.#redis = redis
    this.#requests = new Batcher(acquireTogether.bind(undefined, redis), { itemsMax: CALLS_TOGETHER_MAX })
  }

  /**
   * Takes a unit of each limit, exactly, over any number of nodes.
   * @throws StaleRightsError, or GatewayError CONCURRENCY_LIMIT_EXCEEDED, RATE_LIMIT_EXCEEDED or
   *   MONTHLY_QUOTA_EXCEEDED; nothing is taken
   */
  async acquire(request: LimitRequest): Promise<LimitState> {
    const { decision, state } = await this.#requests.add(sameLimitsKey(request), request)
    if (decision === 'ok') return state
    throw limitRefusal(decision, state, request)
  }

  /**
   * As `acquire`, for the calls of a batch: the first calls get their leases now, and the others
   * wait for a lease.
   */
  async acquireBatch(request: BatchRequest): Promise<BatchGrant> {
    const { callIds, take } = request
    const { decision, granted, leases, stateAfter } = await acquireInMonth(this.#redis, request, { callIds, take })
    const state = stateAfter(granted, leases)
    if (granted === 0) throw limitRefusal(decision, state, request)
    return { state, granted, leases, refusedBy: decision }
  }

  /**
   * Reads the limits without taking a unit.
   *
   * @throws StaleRightsError, and what Redis and Postgres throw
   */
  async read(query: LimitQuery): Promise<LimitState> {
    return (await this.#requests.add(sameLimitsKey(query), query)).state
  }
}

/** A key that is equal for requests that one run of the script can serve. */
function sameLimitsKey({ subject, plan, leaseMs }: LimitQuery): string {
  const { accountId, mode, version } = subject
  const { perMinute, perMonth, inFlight } = plan
  const key = `${accountId} ${mode} ${version} ${perMinute} ${perMonth} ${inFlight} ${leaseMs}`
  const id = countedCredential(subject)
  return id === undefined ? key : `${key} ${id} ${boundsOf(subject).join(' ')}`
}

/**
 * Decides about calls of one account in their order, in one step. All calls have the same limits. A
 * request without a call only reads.
 */
export async function acquireTogether(
  redis: RedisConnection,
  requests: Items<LimitQuery & { callId?: string }>,
): Promise<LimitOutcome[]> {
  const callIds = requests.flatMap(({ callId }) => callId ?? [])
  const { decision, granted, stateAfter } = await acquireInMonth(redis, requests[0], { callIds, take: 'each' })
  let callsSoFar = 0
  return requests.map(({ callId }): LimitOutcome => {
    if (callId !== undefined) callsSoFar += 1
    const isRefused = callId !== undefined && callsSoFar > granted
    return { decision: isRefused ? decision : 'ok', state: stateAfter(Math.min(callsSoFar, granted)) }
  })
}

/**
 * Tries of the script: one for the right month, one for each of two missing counts, and one for the
 * decision.
 */
const COUNT_TRIES_MAX = 4

/**
 * Runs the script until it has all counts, in the month of Redis' clock. `take` is `each` for
 * single calls: as many as fit, each with a lease. For a batch, see `BatchRequest`.
 *
 * @throws StaleRightsError if the account's version is outdated
 */
async function acquireInMonth(
  redis: RedisConnection,
  query: LimitQuery,
  { callIds, take }: { callIds: string[]; take: 'each' | 'all' | 'fit' },
) {
  const { subject, plan, leaseMs, loadUsed, now: testClock } = query
  let at = testClock?.() ?? Date.now()
  for (let tries = 0; tries < COUNT_TRIES_MAX; tries += 1) {
    const month = monthOf(at)
    const { all: keys, month: monthKey, credentialMonth = '' } = limitKeys(subject, month.name)
    const perMonth = subject.mode === 'test' ? -1 : plan.perMonth
    const values = [testClock?.() ?? '', subject.version, take, leaseMs, month.startsAt, month.endsAt]
    const bounds = [plan.perMinute, plan.inFlight, perMonth, ...boundsOf(subject)]
    const reply = (await acquireScript.run(redis, keys, [...values, ...bounds, ...callIds])) as ScriptReply
    if (reply[0] === 'stale') throw new StaleRightsError()
    if (reply[0] === 'other-month') {
      at = reply[1]
      continue
    }
    const countLifeMs = month.endsAt - at + MONTH_GRACE_MS
    if (reply[0] === 'no-month-count') {
      await redis.set(monthKey, await loadUsed(month.name), 'PX', countLifeMs, 'NX')
      continue
    }
    if (reply[0] === 'no-credential-count') {
      const used = await loadUsed(month.name, countedCredential(subject))
      await redis.set(credentialMonth, used, 'PX', countLifeMs, 'NX')
      continue
    }
    const [decision, now, granted = 0, leases = 0, waitMs = 0, ...used] = reply
    const [inMinute = 0, inFlight = 0, inMonth = 0, resetMs = 0, ...ofCredential] = used
    const monthMs = Math.max(0, month.endsAt - now)
    /**
     * The state of the limits after the first `calls` calls. Each call has a lease, but of a batch
     * only the first `leaseCount` calls.
     */
    const stateAfter = (calls: number, leaseCount = calls): LimitState => ({
      now,
      plan,
      minute: { used: inMinute + calls, resetMs },
      month: perMonth < 0 ? undefined : { used: inMonth + calls, resetMs: monthMs },
      inFlight: inFlight + leaseCount,
      waitMs,
      credential: ofCredential.length === 0 ? undefined : credentialState(subject, ofCredential, { calls, leaseCount }),
    })
    return { decision, granted, leases, stateAfter }
  }
  throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
}

/** The keys of the script in its order, and the keys of the counts that may be missing. */
function limitKeys(
  subject: LimitSubject,
  monthName: string,
): { all: string[]; month: string; credentialMonth?: string } {
  const { accountId, mode } = subject
  const month = accountKeys.month(accountId, monthName)
  const ofAccount = [
    accountKeys.version(accountId),
    accountKeys.minute(accountId, mode),
    accountKeys.inFlight(accountId, mode),
    month,
    accountKeys.expectedEnds(accountId, mode),
  ]
  const credentialId = countedCredential(subject)
  if (credentialId === undefined) return { all: ofAccount, month }
  const credentialMonth = accountKeys.credentialMonth(accountId, credentialId, monthName)
  const ofCredential = [
    accountKeys.credentialMinute(accountId, mode, credentialId),
    accountKeys.credentialInFlight(accountId, mode, credentialId),
    credentialMonth,
  ]
  return { all: [...ofAccount, ...ofCredential], month, credentialMonth }
}
