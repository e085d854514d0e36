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
import type { LastFailure } from './health-view.ts'
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

/** State changes kept in Redis until they are in Postgres, about. */
const CHANGES_MAX = 1_000

/** What an attempt says of its upstream. */
export interface AttemptRecord {
  /**
   * `hanging`: it has no answer after a long time, a failure in a row whose end is not known yet.
   * `late`: the failed end of such a call. `endpoint-fail`: a probe made the recorded call of an
   * endpoint, and its answer is a failure, while other endpoints may work. `none`: it says nothing,
   * it only releases the half-open slot it held.
   */
  result: 'ok' | 'fail' | 'hanging' | 'late' | 'endpoint-fail' | 'none'
  /** Code of the failure, for the cause of a change. */
  code?: string
  /** Connect to last byte, milliseconds. */
  latencyMs: number
  source: 'call' | 'probe'
  /** Whether it was without undeclared parameters: others' failures may be their callers' doing. */
  isPlain: boolean
  /**
   * Whose call it was, see `voterOf`: failures of few callers neither open the breaker nor make the
   * API Down.
   */
  voter?: string | undefined
  /** Token with which the attempt acquired its half-open slot, when the breaker was open. */
  slot?: string | undefined
  /** Failures in a row that open the breaker after a clean record, if that is fewer than usual. */
  failuresToOpen?: number
  /**
   * Whether an earlier attempt of its call was counted as failed: the call is one failure of the
   * score, however often it was repeated. The breaker counts each.
   */
  isRepeat?: boolean
  /** What a good answer lacks of the members that the recorded answers have. */
  members?: MembersSeen | undefined
}

/** Members of an answer's data that matter to the alarm: see note-members.lua. */
export interface MembersSeen {
  endpoint: string
  lacks: string[]
  /** Members that it has, among the members that answers lacked lately. */
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

/** Notes why the last attempt failed, beside the counts. One command, for failures alone. */
export async function noteFailure(
  redis: RedisConnection,
  slug: string,
  { at, code, words, isNetwork, endpoint = '' }: LastFailure,
): Promise<void> {
  const failed = { failedAt: at, failedCode: code, failedWords: words, failedNet: isNetwork ? 1 : 0 }
  await redis.hset(upstreamKeys.health(slug), { ...failed, failedPath: endpoint })
}

/**
 * Counts an attempt. One command; nobody needs to wait for it.
 *
 * @param now for tests: Redis' clock otherwise. Milliseconds
 */
export async function recordAttempt(
  redis: RedisConnection,
  slug: string,
  { now, ...attempt }: AttemptRecord & { now?: number },
): Promise<Recorded> {
  return await record(redis, slug, { ...attempt, latencies: String(Math.round(attempt.latencyMs)), now })
}

/**
 * Counts good attempts of calls, one or more, that ended at about the same time: one step for all
 * of them.
 */
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
  /** Whether state or breaker changed. */
  changed: boolean
  /** Not kept to the state's band. */
  score: number
  /**
   * Whether a probe must decide if the breaker opens: the failures so far may be one caller's
   * doing.
   */
  needsProbe: boolean
  /** Whether this attempt closed the breaker. */
  hasClosed: boolean
  /**
   * Endpoint whose recorded call a probe must make: the source may have no data for what callers
   * want.
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
 * The breaker has closed meanwhile, the half-open slot is this attempt's, a probe must have it, or
 * how long until there may be one: see `breakerWaitMsIn`.
 */
export type HalfOpenAnswer = { kind: 'closed' | 'slot' | 'probe' } | { kind: 'wait'; waitMs: number }

/**
 * Acquires the half-open slot of an open breaker. A single attempt holds the slot at a time.
 * `skipsPause` (an operator's probe) skips the breaker's pause, but not an attempt that is under
 * way. A `voter` whose calls failed of late leaves the slot to a probe.
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
 * Notes until when the source itself limits the gateway, so that every process can say so without a
 * round trip of its own.
 *
 * @param until Redis' time, milliseconds since the epoch; 0 takes back what was noted
 * @throws what Redis throws
 */
export async function noteSourceLimit(redis: RedisConnection, slug: string, until: number): Promise<void> {
  await noteUntil(redis, slug, { limitedUntil: Math.round(until) })
}

/**
 * Notes until when, at the latest, accounts may be remembered whose undeclared parameters met a
 * limit: until then the other processes look for the account of such a call.
 *
 * @param until Redis' time, milliseconds since the epoch
 * @throws what Redis throws
 */
export async function noteCallersLimited(redis: RedisConnection, slug: string, until: number): Promise<void> {
  await noteUntil(redis, slug, { callersLimitedUntil: Math.round(until) })
}

async function noteUntil(redis: RedisConnection, slug: string, fields: Record<string, number>): Promise<void> {
  await redis.hset(upstreamKeys.health(slug), fields)
  await redis.publish(channels.health, slug)
}
