import { channels } from '../redis/keys.ts'
import { loadScript, type ScriptConstants } from '../redis/script.ts'
import {
  BACKFILL_AFTER_MS,
  COLD_START_HOLD_MS,
  LEASE_MS,
  REPLY_MS,
  ROUND_TRIP_MS_MAX,
  WAITER_TTL_MS,
  WINDOW_MARGIN_MS,
} from './timing.ts'

/** Most calls that wait for one cap. Beyond it a forecast would be useless. */
export const QUEUE_LENGTH_MAX = 2_000

/**
 * Virtual time of a call with weight 1. It is a multiple of every weight, so that tags are whole
 * numbers.
 */
const COST = 8

const KEY_LIFE_MS = 86_400_000

const WAKE_UP_CHANNEL = channels.wakeUp

const SHARES = {
  /**
   * If a rate allows at most so many requests in a window, it is scarce and accounts have shares of
   * it.
   */
  SCARCE_MAX: 100,
  /** How long after its last call an account counts as having demand, milliseconds. */
  DEMAND_WINDOW_MS: 300_000,
  /**
   * Most shares, the latest first, whose recent demand a plan reads, because more would cost Redis
   * time. If there are more, they count as one other share, so that no share is bound less.
   */
  ASKERS_READ_MAX: 256,
  /**
   * The part of what a group may hold of a long window that is reserved for groups in it that have
   * had little or nothing.
   */
  KEPT_PART: 0.2,
  /**
   * In windows up to this length nothing is reserved, because a newcomer soon gets a permit.
   * Milliseconds.
   */
  KEPT_WINDOW_MS_MIN: 60_000 + WINDOW_MARGIN_MS,
  /**
   * If an account outside of every network was the only share with demand for so long, the account
   * may use the reserved part too, milliseconds.
   */
  KEPT_ALONE_MS: 86_400_000,
}

const PLANNING_PACE = {
  /** A longer queue is planned at intervals, not for each call. */
  PLANNED_LENGTH_MAX: 128,
  PLAN_EVERY_MS: 250,
  /**
   * If a call's slot leaves less than this time plus the service time until the call's deadline,
   * the slot is too late.
   */
  REPLY_MS,
}

/**
 * How long an eviction is kept for its call's worker, and the reply of a poll for a worker that
 * repeats the poll. It is longer than any call. Milliseconds.
 */
const EVICTED_TTL_MS = 900_000
const POLL_REPLY_TTL_MS = EVICTED_TTL_MS

/** Waiters of all workers that a poll considers, the lowest tags first. */
const WAITERS_PLANNED_MAX = 200

/** A poll takes at most one in so many of the requests that the cap has left as permits ahead. */
const AHEAD_PART = 8

/** Most calls with the same start tag that keep their order. */
const SEQ_SPAN = 2 ** 20

/**
 * If an upstream had closed itself, it gets its full concurrency again after this many requests at
 * once.
 */
const RAMP_MAX = 64

const FORECAST = {
  /**
   * How much later than forecast a call may start: so many milliseconds, or such a part of its
   * wait.
   */
  FORECAST_SLACK_MS: 250,
  FORECAST_SLACK_PART: 0.02,
  /** Longest expected wait that is caused by connections or workers and not by the rates. */
  CONGESTION_MS_MAX: 5_000,
  /**
   * Windows over which grants are counted to measure how fast a queue drains, milliseconds. The
   * higher rate counts.
   */
  DRAIN_WINDOW_MS: 1_000,
  DRAIN_WINDOW_LONG_MS: 3_000,
  /**
   * A shorter queue is not judged by the measured rate, because calls with stored answers leave it
   * without a grant.
   */
  DRAIN_LENGTH_MIN: 32,
  /** Part of QUEUE_LENGTH_MAX that asynchronous calls may use. */
  ASYNC_PART_MAX: 0.5,
}

const load = (name: string, constants: ScriptConstants = {}) =>
  loadScript(new URL(`./lua/${name}.lua`, import.meta.url), constants)

export const GRANT_RULES = { COLD_START_HOLD_MS, ...SHARES }

/** What a script needs to queue calls. */
const JOIN = {
  BACKFILL_AFTER_MS,
  COST,
  EVICTED_TTL_MS,
  KEY_LIFE_MS,
  ROUND_TRIP_MS_MAX,
  LEASE_MS,
  QUEUE_LENGTH_MAX,
  SEQ_SPAN,
  WAITER_TTL_MS,
  WAKE_UP_CHANNEL,
  ...GRANT_RULES,
  ...PLANNING_PACE,
  ...FORECAST,
}

export const scripts = {
  acquire: load('acquire', { AHEAD_PART, POLL_REPLY_TTL_MS, RAMP_MAX, WAITERS_PLANNED_MAX, ...JOIN }),
  release: load('release', { RAMP_MAX, WAKE_UP_CHANNEL }),
  renew: load('renew'),
  applyUpstreamLimit: load('apply-upstream-limit', {
    EVICTED_TTL_MS,
    KEY_LIFE_MS,
    WAKE_UP_CHANNEL,
    ...GRANT_RULES,
    ...PLANNING_PACE,
  }),
  beginGradually: load('begin-gradually', { KEY_LIFE_MS, WAKE_UP_CHANNEL }),
  joinWaitQueue: load('join-queue', JOIN),
  leaveWaitQueue: load('leave-queue', { COST, SCARCE_MAX: SHARES.SCARCE_MAX, WAKE_UP_CHANNEL }),
  read: load('read', { ...GRANT_RULES, PLANNED_LENGTH_MAX: PLANNING_PACE.PLANNED_LENGTH_MAX }),
  initialise: load('initialise', { KEY_LIFE_MS }),
  backfill: load('backfill', {
    EVICTED_TTL_MS,
    KEY_LIFE_MS,
    WAKE_UP_CHANNEL,
    ...GRANT_RULES,
    ...PLANNING_PACE,
  }),
}
