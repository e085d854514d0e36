import { HALF_OPEN_WAIT_MS } from './health-thresholds.ts'
import {
  clampToBand,
  decayed,
  failShare,
  type HealthStatus,
  healthScore,
  quantileOfHistogram,
  type ScoreParts,
  scoreParts,
} from './score.ts'

/** The last failed attempt. */
export interface LastFailure {
  /** When it ended, in the time of Redis, milliseconds. */
  at: number
  code: string
  /** What happened: `HTTP 500 in 87 ms`, `DNS: no such host`. */
  words: string
  /** Whether no answer came at all, because the look-up, the connection or the handshake failed. */
  isNetwork: boolean
  /** Path of the endpoint; absent if the cheapest request was sent. */
  endpoint?: string | undefined
}

/** Health of an upstream at one time. */
export interface HealthView {
  status: HealthStatus
  /** 0 to 100, within the band of the status. */
  score: number
  /** The score before it is limited to the band of the status. */
  unclampedScore: number
  parts: ScoreParts & {
    /**
     * Decayed counts of good and failed attempts, and the share of failures from which the score is
     * made.
     */
    ok: number
    fail: number
    failShare: number
    /** Milliseconds; undefined if there are no recent answers. */
    p95Ms: number | undefined
  }
  /** Median time of the answers, milliseconds; undefined if there are no recent answers. */
  usualMs: number | undefined
  /** When the status began, milliseconds since the epoch; undefined if it has never changed. */
  since: number | undefined
  cause: string | undefined
  /**
   * When the first good attempt since Redis last lost its data ended. Before it, "Healthy" is only
   * an assumption. 0 if unknown, Infinity if there was none.
   */
  firstOkAt: number
  /** When the last good attempt ended, in the time of Redis, milliseconds; 0 for never. */
  lastOkAt: number
  /**
   * Until when the source itself limits the gateway, in the time of Redis, milliseconds; undefined
   * if it does not.
   */
  limitedUntil: number | undefined
  /** Undefined if no attempt has failed. Later attempts may have succeeded. */
  lastFailure: LastFailure | undefined
  /**
   * When the last attempt for a caller, and the last probe, ended. Time of Redis, milliseconds; 0
   * for never.
   */
  lastCallAt: number
  lastProbeAt: number
  /**
   * Whether the breaker is open, so that only half-open attempts are sent. The status is then Down.
   * It may also be Down by the score alone.
   */
  isOpen: boolean
  /**
   * When an open breaker allows its next half-open attempt at the latest, in the time of Redis;
   * undefined while it is closed.
   */
  halfOpenAt: number | undefined
  /** Whether a half-open attempt is running. */
  isSlotTaken: boolean
  /** Set if the source is down or limits the gateway, and a fallback source answers. */
  isServedByFallback?: true
}

/** Reads the hash that `record.ts` writes. An upstream without attempts counts as healthy. */
export function viewHealth(hash: Record<string, string>, now: number): HealthView {
  const elapsedMs = now - Number(hash.at ?? now)
  const ok = decayed(Number(hash.ok ?? 0), elapsedMs)
  const fail = decayed(Number(hash.fail ?? 0), elapsedMs)
  const weights = (hash.hist ?? '').split(',').map((weight) => decayed(Number(weight), elapsedMs))
  const p95Ms = quantileOfHistogram(weights, 0.95)
  const status = readStatus(hash.state)
  const isOpen = hash.open === '1'
  const unclampedScore = healthScore(ok, fail, p95Ms)
  return {
    status,
    score: clampToBand(unclampedScore, status),
    unclampedScore,
    parts: { ...scoreParts(ok, fail, p95Ms), ok, fail, failShare: failShare(ok, fail), p95Ms },
    usualMs: quantileOfHistogram(weights, 0.5),
    since: hash.since === undefined ? undefined : Number(hash.since),
    cause: hash.cause,
    firstOkAt:
      hash.at !== undefined && hash.okAt === undefined ? Number.POSITIVE_INFINITY : Number(hash.firstOkAt ?? 0),
    lastOkAt: Number(hash.okAt ?? 0),
    limitedUntil: Number(hash.limitedUntil ?? 0) > now ? Number(hash.limitedUntil) : undefined,
    lastFailure: readLastFailure(hash),
    lastCallAt: Number(hash.callAt ?? 0),
    lastProbeAt: Number(hash.probeAt ?? 0),
    isOpen,
    halfOpenAt: isOpen ? Number(hash.trialAt ?? 0) : undefined,
    isSlotTaken: isOpen && (hash.trialBy ?? '') !== '' && Number(hash.trialAt ?? 0) > now,
  }
}

function readLastFailure(hash: Record<string, string>): LastFailure | undefined {
  const { failedAt, failedCode = '', failedWords = '', failedNet, failedPath = '' } = hash
  if (failedAt === undefined) return undefined
  const failure = { at: Number(failedAt), code: failedCode, words: failedWords, isNetwork: failedNet === '1' }
  return failedPath === '' ? failure : { ...failure, endpoint: failedPath }
}

/**
 * The health of an API whose source is down, or limits the gateway, while a fallback source answers
 * its callers.
 */
export function servedByFallback(view: HealthView): HealthView {
  const status = view.status === 'Down' ? 'Degraded' : view.status
  const score = clampToBand(view.unclampedScore, status)
  // While the source is down, no call waits for the end of its limit.
  const limitedUntil = view.status === 'Down' ? undefined : view.limitedUntil
  return { ...view, status, score, isOpen: false, limitedUntil, isServedByFallback: true }
}

/**
 * How far this process's estimate of Redis' clock may lag. Something that Redis allows now must not
 * be refused because of it.
 */
const CLOCK_ERROR_MS = 125

/**
 * Time until an open breaker allows a half-open attempt, whole milliseconds (0: now). While an
 * attempt is running, its end is unknown: its lease only matters if its worker died.
 */
export function halfOpenWaitMs(hash: Record<string, string>, now: number): number {
  const waitMs = Math.max(0, Math.ceil(Number(hash.trialAt ?? 0) - now))
  if ((hash.trialBy ?? '') === '') return waitMs > CLOCK_ERROR_MS ? waitMs : 0
  return Math.min(waitMs, HALF_OPEN_WAIT_MS)
}

export function readStatus(text: string | undefined): HealthStatus {
  return text === 'Down' || text === 'Degraded' ? text : 'Healthy'
}
