import { HALF_OPEN_WAIT_MS } from './health-thresholds.ts'
import {
  clampToBand,
  decay,
  failShare,
  type HealthStatus,
  healthScore,
  quantileOfHistogram,
  type ScoreParts,
  scoreParts,
} from './score.ts'

/** The last attempt that failed. */
export interface LastFailure {
  /** When, Redis time, milliseconds. */
  at: number
  code: string
  /** `HTTP 500 in 87 ms`, `DNS: no such host`. */
  words: string
  /** No answer came at all: neither name, connection nor handshake. */
  isNetwork: boolean
  /** Path of the endpoint that was called; absent for the cheapest request. */
  endpoint?: string | undefined
}

/** Health of an upstream as of one instant. */
export interface HealthView {
  status: HealthStatus
  /** 0 to 100, within the band of the status. */
  score: number
  /** The score before it is kept to the status's band. */
  unclampedScore: number
  parts: ScoreParts & {
    /**
     * Decayed counts of good and failed attempts, and the share of failures that the score goes by.
     */
    ok: number
    fail: number
    failShare: number
    /** Milliseconds; undefined if no answer is recent enough. */
    p95Ms: number | undefined
  }
  /**
   * How long half of the answers take at most, milliseconds; undefined if no answer is recent
   * enough.
   */
  usualMs: number | undefined
  /** When the status began, milliseconds since the epoch; undefined if it never changed. */
  since: number | undefined
  cause: string | undefined
  /**
   * The first good attempt since Redis has lost no data: before it Healthy is an assumption. 0 if
   * that is not known, Infinity for none.
   */
  firstOkAt: number
  /** When the last good attempt ended. Redis time, milliseconds; 0 for never. */
  lastOkAt: number
  /**
   * Until when the source itself limits the gateway; undefined while it does not. Redis time,
   * milliseconds.
   */
  limitedUntil: number | undefined
  /** Undefined if no attempt has failed. Good attempts may have followed. */
  lastFailure: LastFailure | undefined
  /**
   * When the last attempt for a caller, and the last probe, ended. Redis time, milliseconds; 0 for
   * never.
   */
  lastCallAt: number
  lastProbeAt: number
  /**
   * Whether only half-open attempts are sent. The status is Down then; it may be Down by its score
   * alone too.
   */
  isOpen: boolean
  /**
   * When an open breaker allows its next half-open attempt, at the latest, Redis time; undefined
   * while it is closed.
   */
  halfOpenAt: number | undefined
  /** Whether a half-open attempt is under way. */
  isSlotTaken: boolean
  /** The source is down, and a fallback source answers. */
  isServedByFallback?: true
}

/** Reads the hash that `record.ts` writes; an upstream nobody tried yet is healthy. */
export function viewHealth(hash: Record<string, string>, now: number): HealthView {
  const elapsedMs = now - Number(hash.at ?? now)
  const ok = decay(Number(hash.ok ?? 0), elapsedMs)
  const fail = decay(Number(hash.fail ?? 0), elapsedMs)
  const weights = (hash.hist ?? '').split(',').map((weight) => decay(Number(weight), elapsedMs))
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

/** The health of an API whose source is down while a fallback source answers its callers. */
export function servedByFallback(view: HealthView): HealthView {
  const score = clampToBand(view.unclampedScore, 'Degraded')
  return { ...view, status: 'Degraded', score, isOpen: false, isServedByFallback: true }
}

/**
 * By so much this process's idea of Redis' clock may lag; what Redis allows at once must not be
 * refused for it.
 */
const CLOCK_ERROR_MS = 125

/**
 * How long until an open breaker allows a half-open attempt, whole milliseconds (0: now); undefined
 * while it is closed. While an attempt is under way, nobody knows when it ends; its lease is for an
 * attempt whose worker died.
 */
export function breakerWaitMsIn(hash: Record<string, string>, now: number): number | undefined {
  if (hash.open !== '1') return undefined
  const waitMs = Math.max(0, Math.ceil(Number(hash.trialAt ?? 0) - now))
  if ((hash.trialBy ?? '') === '') return waitMs > CLOCK_ERROR_MS ? waitMs : 0
  return Math.min(waitMs, HALF_OPEN_WAIT_MS)
}

export function readStatus(text: string | undefined): HealthStatus {
  return text === 'Down' || text === 'Degraded' ? text : 'Healthy'
}
