import type { Api } from './catalog.ts'

/** Largest part of a cap that scheduled probes may use; the rest is for calls. */
const CAP_SHARE = 0.15

/**
 * Seconds between scheduled probes of an API: those of its file, or more where its caps, which operators and the
 * environment may set below the file's, would be used up by probes.
 */
export function probeEverySeconds({ upstream, caps }: Pick<Api, 'upstream' | 'caps'>): number {
  const leasts = caps.rates.map(({ max, seconds }) => Math.ceil(seconds / (max * CAP_SHARE)))
  return Math.max(upstream.probe.everySeconds, ...leasts)
}

/** How many times as long as its file says an API goes without a probe because of its caps, 1 and up. */
export function probeSlowdown(api: Pick<Api, 'upstream' | 'caps'>): number {
  return probeEverySeconds(api) / api.upstream.probe.everySeconds
}
