import type { RedisConnection } from '../redis/connection.ts'
import { channels, upstreamKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import {
  CHANCE_TO_OPEN,
  CONFIRM_EVERY_MS,
  CONFIRM_SCORE_EVERY_MS,
  FAILURES_TO_OPEN,
  FAILURES_TO_OPEN_MAX,
  GOOD_TO_RECOVER,
  HALF_OPEN_LEASE_MS,
  HALF_OPEN_PAUSE_MS_MAX,
  HALF_OPEN_PAUSE_MS_MIN,
  HALF_OPEN_WAIT_MS,
  LACKING_NAMED_MAX,
  LACKING_TO_PROBE,
  ORDINARY_MS,
  QUIET_MS_TO_OPEN,
  SUCCESSES_TO_CLOSE,
  VOTE_MS,
  VOTERS_MAX,
  VOTES_TO_BE_DOWN,
} from './health-thresholds.ts'
import { type LastFailure, readStatus } from './health-view.ts'
import {
  AVAILABILITY_POINTS,
  FAST_MS,
  HALF_LIFE_MS,
  LATENCY_BOUNDS_MS,
  LATENCY_POINTS,
  LATENCY_WEIGHT_MIN,
  PRIOR_ATTEMPTS,
  SLOW_MS,
} from './score.ts'

/** About how many state changes are kept in Redis until they are in Postgres. */
const CHANGES_MAX = 1_000

/** What an attempt says about its upstream. */
export interface AttemptRecord {
  /**
   * `hanging`: the attempt has had no answer for a long time; this counts as a failure in a row
   * before it ends. `late`: the failed end of such an attempt. `endpoint-fail`: a probe made the
   * recorded call of an endpoint and it failed, while other endpoints may work. `none`: the attempt
   * says nothing and only releases its half-open slot.
   */
  result: 'ok' | 'fail' | 'hanging' | 'late' | 'endpoint-fail' | 'none'
  /** Code of the failure; a change of state records it as the cause. */
  code?: string
  /** Milliseconds from connect to the last byte. */
  latencyMs: number
  source: 'call' | 'probe'
  /** Whether the request had no undeclared parameters, which could be the reason for a failure. */
  isPlain: boolean
  /**
   * The caller, see `voterOf`. Failures of few callers neither open the breaker nor make the API
   * Down.
   */
  voter?: string | undefined
  /** Token with which the attempt acquired its half-open slot, if the breaker was open. */
  slot?: string | undefined
  /**
   * Failures in a row that open the breaker of an upstream without earlier failures, if fewer than
   * usual.
   */
  failuresToOpen?: number
  /**
   * Whether an earlier attempt of the same call was counted as failed. The score counts a call as a
   * single failure, however often its request was repeated. The breaker counts each attempt.
   */
  isRepeat?: boolean
  /** Members of the recorded answers that a good answer lacks. */
  members?: MembersSeen | undefined
}

/** Members of an answer's data, for the alarm about missing members, see note-members.lua. */
export interface MembersSeen {
  endpoint: string
  lacks: string[]
  /** Of the members that answers recently lacked: the members that this answer has. */
  has: string[]
}

const RECORD_ATTEMPT = loadScript(new URL('./lua/record-attempt.lua', import.meta.url), {
  AVAILABILITY_POINTS,
  CHANCE_TO_OPEN,
  CHANGES_MAX,
  CONFIRM_EVERY_MS,
  CONFIRM_SCORE_EVERY_MS,
  FAILURES_TO_OPEN_MAX,
  FAST_MS,
  GOOD_TO_RECOVER,
  HALF_LIFE_MS,
  HEALTH_CHANNEL: channels.health,
  LATENCY_BOUNDS_MS,
  LATENCY_POINTS,
  LACKING_NAMED_MAX,
  LACKING_TO_PROBE,
  LATENCY_WEIGHT_MIN,
  ORDINARY_MS,
  PRIOR_ATTEMPTS,
  QUIET_MS_TO_OPEN,
  SLOW_MS,
  SUCCESSES_TO_CLOSE,
  HALF_OPEN_PAUSE_MS_MIN,
  HALF_OPEN_PAUSE_MS_MAX,
  VOTE_MS,
  VOTERS_MAX,
  VOTES_TO_BE_DOWN,
})

const ACQUIRE_SLOT = loadScript(new URL('./lua/acquire-half-open-slot.lua', import.meta.url), {
  HALF_OPEN_WAIT_MS,
  HEALTH_CHANNEL: channels.health,
  VOTE_MS,
})

/** Stores why the last attempt failed. It takes one command, and only for failures. */
export async function noteFailure(
  redis: RedisConnection,
  slug: string,
  { at, code, words, isNetwork, endpoint = '' }: LastFailure,
): Promise<void> {
  const failed = { failedAt: at, failedCode: code, failedWords: words, failedNet: isNetwork ? 1 : 0 }
  await redis.hset(upstreamKeys.health(slug), { ...failed, failedPath: endpoint })
}

/**
 * Forgets all that is known of the health of an upstream, as if nobody had called it yet. If it was
 * not healthy, this is a change of state.
 *
 * @param at the time of Redis, milliseconds since the epoch
 * @throws what Redis throws
 */
export async function forgetHealth(redis: RedisConnection, slug: string, at: number): Promise<void> {
  const key = upstreamKeys.health(slug)
  const state = readStatus((await redis.hget(key, 'state')) ?? undefined)
  const change = { at, from: state, to: 'Healthy', cause: 'other-address', score: 100, ok: 0, fail: 0 }
  if (state !== 'Healthy') {
    const fields = Object.entries(change).flat()
    await redis.xadd(upstreamKeys.healthChanges(slug), 'MAXLEN', '~', CHANGES_MAX, '*', ...fields)
  }
  await redis.del(key)
  await redis.publish(channels.health, slug)
}

/**
 * Counts an attempt with one command. Nobody needs to wait for it.
 *
 * @param now milliseconds, for tests; default: the clock of Redis
 */
export async function recordAttempt(
  redis: RedisConnection,
  slug: string,
  { now, ...attempt }: AttemptRecord & { now?: number },
): Promise<Recorded> {
  return await record(redis, slug, { ...attempt, latencies: String(Math.round(attempt.latencyMs)), now })
}

/** Counts one or more good attempts of calls that ended at about the same time, in one step. */
export async function recordSuccesses(
  redis: RedisConnection,
  slug: string,
  { latenciesMs, now }: { latenciesMs: number[]; now?: number },
): Promise<Recorded> {
  const latencies = latenciesMs.map(Math.round).join(',')
  return await record(redis, slug, { result: 'ok', latencies, source: 'call', isPlain: true, now })
}

/** The state after an attempt was counted. */
export interface Recorded {
  state: string
  /** Whether the state or the breaker changed. */
  changed: boolean
  /** The score, not limited to the band of the state. */
  score: number
  /**
   * Whether a probe must decide whether the breaker opens, because a single caller may have caused
   * the failures.
   */
  needsProbe: boolean
  /** Whether this attempt closed the breaker. */
  hasClosed: boolean
  /**
   * The endpoint whose recorded call a probe must make, because the source may just have no data
   * for what callers request.
   */
  probedEndpoint: string | undefined
}

interface Counted extends Omit<AttemptRecord, 'latencyMs'> {
  latencies: string
  now: number | undefined
}

async function record(redis: RedisConnection, slug: string, counted: Counted): Promise<Recorded> {
  const { now = '', result, latencies, code = '', source, slot = '', isPlain, voter = '' } = counted
  const { failuresToOpen = FAILURES_TO_OPEN, isRepeat = false, members } = counted
  const noted = members ? JSON.stringify(members) : ''
  const flags = [isPlain ? 1 : 0, voter, failuresToOpen, isRepeat ? 1 : 0, noted]
  const values = [now, result, latencies, code, source, slot, slug, ...flags]
  const keys = [upstreamKeys.health(slug), upstreamKeys.healthChanges(slug)]
  const reply = (await RECORD_ATTEMPT.run(redis, keys, values)) as [string, number, number, number, number, string]
  const [state, changed, score, needsProbe, hasClosed, probed] = reply
  const flagsOf = { changed: changed === 1, needsProbe: needsProbe === 1, hasClosed: hasClosed === 1 }
  return { state, score, ...flagsOf, probedEndpoint: probed === '' ? undefined : probed }
}

/**
 * The answer to a request for the half-open slot: the breaker has closed meanwhile; the attempt has
 * the slot; a probe must take the slot; or the time until a slot may be free, see
 * `halfOpenWaitMs`.
 */
export type HalfOpenAnswer = { kind: 'closed' | 'slot' | 'probe' } | { kind: 'wait'; waitMs: number }

/**
 * Acquires the half-open slot of an open breaker. Only one attempt holds the slot at a time.
 * `skipsPause` (a probe of an operator) skips the breaker's pause, but not a running attempt. If
 * the calls of `voter` failed recently, it leaves the slot to a probe.
 */
export async function acquireHalfOpenSlot(
  redis: RedisConnection,
  slug: string,
  {
    token,
    skipsPause,
    voter = '',
    now,
  }: { token: string; skipsPause?: boolean; voter?: string | undefined; now?: number },
): Promise<HalfOpenAnswer> {
  const values = [now ?? '', token, HALF_OPEN_LEASE_MS, slug, skipsPause ? 1 : 0, voter]
  const reply = await ACQUIRE_SLOT.run(redis, [upstreamKeys.health(slug)], values)
  const [kind, waitMs] = reply as [HalfOpenAnswer['kind'], number]
  return kind === 'wait' ? { kind, waitMs } : { kind }
}

/**
 * Stores until when the source itself limits the gateway, so that every process knows it without a
 * round trip of its own.
 *
 * @param until the time of Redis, milliseconds since the epoch; 0 removes the limit
 * @throws what Redis throws
 */
export async function noteSourceLimit(redis: RedisConnection, slug: string, until: number): Promise<void> {
  await noteUntil(redis, slug, { limitedUntil: Math.round(until) })
}

/**
 * Stores how long there may be callers whom the upstream limits alone. Until then, all processes
 * look for the callers of calls among them.
 *
 * @param until the time of Redis, milliseconds since the epoch; 0: there are none
 * @throws what Redis throws
 */
export async function noteCallersLimited(redis: RedisConnection, slug: string, until: number): Promise<void> {
  await noteUntil(redis, slug, { callersLimitedUntil: Math.round(until) })
}

async function noteUntil(redis: RedisConnection, slug: string, fields: Record<string, number>): Promise<void> {
  await redis.hset(upstreamKeys.health(slug), fields)
  await redis.publish(channels.health, slug)
}
