import type { Api } from './catalog.ts'

/** Largest share of a cap that scheduled probes may use. */
const CAP_PART = 0.15

/**
 * Seconds between scheduled probes: the interval of the upstream's file, or longer if probes would
 * use more than `CAP_PART` of a cap. Operators can lower caps.
 */
export function probeEverySeconds({ upstream, caps }: Pick<Api, 'upstream' | 'caps'>): number {
  const leasts = caps.rates.map(({ max, seconds }) => Math.ceil(seconds / (max * CAP_PART)))
  return Math.max(upstream.probe.everySeconds, ...leasts)
}

/**
 * By which factor probes are rarer than the upstream's file says, because of the caps; at least 1.
 */
export function probeSlowdown(api: Pick<Api, 'upstream' | 'caps'>): number {
  return probeEverySeconds(api) / api.upstream.probe.everySeconds
}
