import type { Api } from './catalog.ts'

/** Largest part of a cap that scheduled probes may use. */
const CAP_PART = 0.15

/**
 * Seconds between scheduled probes: the interval of the file, or more if the caps, which operators
 * may lower, are for calls.
 */
export function probeEverySeconds({ upstream, caps }: Pick<Api, 'upstream' | 'caps'>): number {
  const leasts = caps.rates.map(({ max, seconds }) => Math.ceil(seconds / (max * CAP_PART)))
  return Math.max(upstream.probe.everySeconds, ...leasts)
}

/**
 * How many times as long as its file says an API goes without a probe because of its caps, 1 and
 * up.
 */
export function probeSlowdown(api: Pick<Api, 'upstream' | 'caps'>): number {
  return probeEverySeconds(api) / api.upstream.probe.everySeconds
}
