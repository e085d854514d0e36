/**
 * The health score of an upstream, as a number that anybody can recompute: pure functions of
 * decayed counts.
 */

export type HealthStatus = 'Healthy' | 'Degraded' | 'Down'

/** Half-life of the counts, milliseconds. */
export const HALF_LIFE_MS = 120_000

/**
 * Good attempts that are assumed in addition to real attempts, so that a single failure of a quiet
 * upstream does not count as "all failed".
 */
export const PRIOR_ATTEMPTS = 5

/**
 * Latency (p95) up to which no points are lost, and latency at which all 20 points are lost,
 * milliseconds.
 */
export const FAST_MS = 1_000
export const SLOW_MS = 10_000

/** Points for the share of good attempts, and points for short latencies. */
export const AVAILABILITY_POINTS = 80
export const LATENCY_POINTS = 20

/** Lowest and highest score of each status. */
export const BANDS: Record<HealthStatus, { min: number; max: number }> = {
  Healthy: { min: 80, max: 100 },
  Degraded: { min: 40, max: 79 },
  Down: { min: 0, max: 39 },
}

/** Upper bounds of the latency buckets, milliseconds. A last bucket holds slower answers. */
export const LATENCY_BOUNDS_MS = [
  50, 100, 200, 350, 500, 750, 1_000, 1_250, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 5_000, 6_000, 7_000, 8_000,
  9_000, 10_000,
]

/** If the sum of weights is below this, the latency counts as unknown. */
export const LATENCY_WEIGHT_MIN = 0.01

/** A count after decay. If the clock went backwards, nothing decays. */
export function decayed(value: number, elapsedMs: number): number {
  return value * 2 ** (-Math.max(0, elapsedMs) / HALF_LIFE_MS)
}

/** Share of failed attempts, from 0 to below 1. */
export function failShare(ok: number, fail: number): number {
  return fail / (ok + fail + PRIOR_ATTEMPTS)
}

/** 1 for fast answers, 0 for answers of 10 seconds or more; 1 if the latency is unknown. */
export function latencyFactor(p95Ms: number | undefined): number {
  if (p95Ms === undefined) return 1
  return Math.min(Math.max((SLOW_MS - p95Ms) / (SLOW_MS - FAST_MS), 0), 1)
}

/** The parts of a score in points, not rounded. Their sum is the score. */
export function scoreParts(ok: number, fail: number, p95Ms: number | undefined): ScoreParts {
  return {
    availability: AVAILABILITY_POINTS * Math.max(0, 1 - 2 * failShare(ok, fail)),
    latency: LATENCY_POINTS * latencyFactor(p95Ms),
  }
}

export interface ScoreParts {
  availability: number
  latency: number
}

/** The score, 0 to 100. */
export function healthScore(ok: number, fail: number, p95Ms: number | undefined): number {
  const { availability, latency } = scoreParts(ok, fail, p95Ms)
  return Math.round(availability + latency)
}

/** Limits a score to the band of a status, which changes more slowly than the score. */
export function clampToBand(score: number, status: HealthStatus): number {
  const { min, max } = BANDS[status]
  return Math.min(Math.max(score, min), max)
}

/**
 * A quantile of a histogram over `LATENCY_BOUNDS_MS` (0.95 for the 95th percentile), interpolated
 * within its bucket; undefined if it is empty or too old. Milliseconds.
 */
export function quantileOfHistogram(weights: number[], quantile: number): number | undefined {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total < LATENCY_WEIGHT_MIN) return undefined
  const rank = total * quantile
  let below = 0
  for (const [index, bound] of LATENCY_BOUNDS_MS.entries()) {
    const weight = weights[index] ?? 0
    if (below + weight >= rank) {
      const lower = LATENCY_BOUNDS_MS[index - 1] ?? 0
      return lower + ((bound - lower) * (rank - below)) / weight
    }
    below += weight
  }
  return SLOW_MS
}
