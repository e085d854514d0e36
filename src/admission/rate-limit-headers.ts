import type { LimitState } from '../limits/account-limits.ts'

/** `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, and the older `X-RateLimit-*` (reset in epoch seconds). */
export function rateLimitHeaders({ plan, minute, month, application, now }: LimitState): Record<string, string> {
  const left = Math.max(0, plan.perMinute - minute.used)
  const monthLeft = Math.max(0, plan.perMonth - (month?.used ?? 0))
  const policy = [`"minute";q=${plan.perMinute};w=60`]
  const state = [`"minute";r=${left};t=${Math.ceil(minute.resetMs / 1_000)}`]
  if (month) {
    policy.push(`"month";q=${plan.perMonth}`)
    state.push(`"month";r=${monthLeft};t=${Math.ceil(month.resetMs / 1_000)}`)
  }
  if (month && application) {
    const applicationLeft = Math.max(0, application.perMonth - application.used)
    policy.push(`"application-month";q=${application.perMonth}`)
    state.push(`"application-month";r=${applicationLeft};t=${Math.ceil(month.resetMs / 1_000)}`)
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
