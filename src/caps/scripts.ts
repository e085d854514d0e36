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

/** Calls that may wait for one cap; past it no wait is worth quoting. */
export const QUEUE_LENGTH_MAX = 2_000

/**
 * Virtual time that a call of weight 1 takes; a multiple of every weight, so that tags stay whole.
 */
const COST = 8

const KEY_LIFE_MS = 86_400_000

const WAKE_UP_CHANNEL = channels.wakeUp

const SHARES = {
  /** A rate of at most so many requests a window is scarce: accounts have shares of it. */
  SCARCE_MAX: 100,
  /** How long an account has demand after its last call, milliseconds. */
  DEMAND_WINDOW_MS: 300_000,
  /**
   * Askers, the latest first, of which a plan tells who had demand of late: more cost Redis time
   * and bind a share no less.
   */
  ASKERS_READ_MAX: 256,
  /**
   * Part of what a group may hold of a long window that stays for groups in it that have had none
   * or little.
   */
  KEPT_PART: 0.2,
  /** In a window up to this nothing is kept: a newcomer gets a permit soon. Milliseconds. */
  KEPT_WINDOW_MS_MIN: 60_000 + WINDOW_MARGIN_MS,
  /**
   * For an account that is no network's nothing is kept either if only one share has had demand for
   * so long, milliseconds.
   */
  KEPT_ALONE_MS: 86_400_000,
}

const PLANNING_PACE = {
  /** A longer queue is planned at intervals, not at each call. */
  PLANNED_LENGTH_MAX: 128,
  PLAN_EVERY_MS: 250,
  /**
   * A call whose slot leaves less than this, and the answer time, until its deadline is too late.
   */
  REPLY_MS,
}

/**
 * How long an eviction waits for its call's worker, and a poll's reply for a worker that sends the
 * poll again: longer than any call may take. Milliseconds.
 */
const EVICTED_TTL_MS = 900_000
const POLL_REPLY_TTL_MS = EVICTED_TTL_MS

/** Waiters of all workers that a poll considers, lowest tags first. */
const WAITERS_PLANNED_MAX = 200

/** A poll takes permits ahead for at most one part in so many of what the cap has left. */
const AHEAD_PART = 8

/** So many calls of equal start keep their order. */
const SEQ_SPAN = 2 ** 20

/**
 * Requests at once after which an upstream that had closed itself is trusted with all that its cap
 * allows.
 */
const RAMP_MAX = 64

const FORECAST = {
  /**
   * By how much a call may start later than forecast: so many milliseconds, or such a part of its
   * wait.
   */
  FORECAST_SLACK_MS: 250,
  FORECAST_SLACK_PART: 0.02,
  /**
   * Longest a call may be expected to wait for want of connections or workers rather than for the
   * rates.
   */
  CONGESTION_MS_MAX: 5_000,
  /**
   * Windows over which grants are counted to tell how fast a queue drains, milliseconds: the better
   * rate counts.
   */
  DRAIN_WINDOW_MS: 1_000,
  DRAIN_WINDOW_LONG_MS: 3_000,
  /**
   * A shorter queue is not judged by it: calls that stored answers serve pass through it without a
   * grant.
   */
  DRAIN_LENGTH_MIN: 32,
  /** Part of QUEUE_LENGTH_MAX that asynchronous calls may take. */
  ASYNC_PART_MAX: 0.5,
}

const load = (name: string, constants: ScriptConstants = {}) =>
  loadScript(new URL(`./lua/${name}.lua`, import.meta.url), constants)

export const GRANT_RULES = { COLD_START_HOLD_MS, ...SHARES }

/** What a script needs that queues calls. */
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
