import type { LimitState } from '../limits/account-limits.ts'

/** `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, and the older `X-RateLimit-*` (epoch seconds), of a state read `ageMs` ago. */
export function rateLimitHeaders(
  { plan, minute, month, application, now }: LimitState,
  ageMs = 0,
): Record<string, string> {
  const secondsTo = (resetMs: number): number => Math.ceil(Math.max(0, resetMs - ageMs) / 1_000)
  const left = Math.max(0, plan.perMinute - minute.used)
  const monthLeft = Math.max(0, plan.perMonth - (month?.used ?? 0))
  const policy = [`"minute";q=${plan.perMinute};w=60`]
  const state = [`"minute";r=${left};t=${secondsTo(minute.resetMs)}`]
  if (month) {
    policy.push(`"month";q=${plan.perMonth}`)
    state.push(`"month";r=${monthLeft};t=${secondsTo(month.resetMs)}`)
  }
  if (month && application) {
    const applicationLeft = Math.max(0, application.perMonth - application.used)
    policy.push(`"application-month";q=${application.perMonth}`)
    state.push(`"application-month";r=${applicationLeft};t=${secondsTo(month.resetMs)}`)
  }
  policy.push(`"in-flight";q=${plan.inFlight};qu="concurrent-requests"`)
  return {
    'ratelimit-policy': policy.join(', '),
    ratelimit: state.join(', '),
    'x-ratelimit-limit': String(plan.perMinute),
    'x-ratelimit-remaining': String(left),
    'x-ratelimit-reset': String(Math.ceil((now + minute.resetMs) / 1_000)),
  }
}
