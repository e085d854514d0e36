import type { LimitState } from '../limits/limit-state.ts'

/**
 * The minute that has fewer calls left: the minute of the account, or of the
 * credential. If both are used up, the minute that ends later.
 */
export function tightestMinute({ plan, minute, credential }: LimitState): {
  max: number
  used: number
  resetMs: number
} {
  const ofAccount = { ...minute, max: plan.perMinute }
  const own = credential?.minute
  if (!own) return ofAccount
  const [leftOfAccount, leftOfOwn] = [ofAccount, own].map(({ max, used }) => Math.max(0, max - used)) as [
    number,
    number,
  ]
  if (leftOfAccount === leftOfOwn) return ofAccount.resetMs > own.resetMs ? ofAccount : own
  return leftOfAccount < leftOfOwn ? ofAccount : own
}

/**
 * `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, and the older `X-RateLimit-*` (epoch
 * seconds), of a state read `ageMs` ago.
 */
export function rateLimitHeaders(limits: LimitState, ageMs = 0): Record<string, string> {
  const { plan, minute, month, credential, now } = limits
  const policy: string[] = []
  const state: string[] = []
  const add = (name: string, parameters: string, own: { max: number; used: number; resetMs: number }): void => {
    const seconds = Math.ceil(Math.max(0, own.resetMs - ageMs) / 1_000)
    policy.push(`"${name}";q=${own.max}${parameters}`)
    state.push(`"${name}";r=${Math.max(0, own.max - own.used)};t=${seconds}`)
  }
  add('minute', ';w=60', { ...minute, max: plan.perMinute })
  if (month) add('month', '', { ...month, max: plan.perMonth })
  if (credential?.minute) add('credential-minute', ';w=60', credential.minute)
  if (month && credential?.month) add('credential-month', '', { ...credential.month, resetMs: month.resetMs })
  policy.push(`"in-flight";q=${plan.inFlight};qu="concurrent-requests"`)
  if (credential?.inFlight) policy.push(`"credential-in-flight";q=${credential.inFlight.max};qu="concurrent-requests"`)
  const tightest = tightestMinute(limits)
  return {
    'ratelimit-policy': policy.join(', '),
    ratelimit: state.join(', '),
    'x-ratelimit-limit': String(tightest.max),
    'x-ratelimit-remaining': String(Math.max(0, tightest.max - tightest.used)),
    'x-ratelimit-reset': String(Math.ceil((now + tightest.resetMs) / 1_000)),
  }
}
