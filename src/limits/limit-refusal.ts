import type { Tier } from '../catalog/upstream.ts'
import { GatewayError } from '../errors.ts'
import type { LimitState, LimitSubject } from './account-limits.ts'
import { planOf } from './plans.ts'

export function limitRefusal(
  decision: string,
  state: LimitState,
  { tier, subject }: { tier: Tier; subject: LimitSubject },
): GatewayError {
  const upgrade = tier === 'developer' ? { upgrade_to: 'pro' } : tier === 'pro' ? { upgrade_to: 'business' } : {}
  const plan = planOf(tier)
  const { limits } = state
  switch (decision) {
    case 'inFlight':
      return new GatewayError('CONCURRENCY_LIMIT_EXCEEDED', {
        message: `The plan ${plan} allows ${limits.inFlight} calls under way at once.`,
        tokens: { limit: limits.inFlight, ...upgrade },
        retryAfterMs: 1_000,
      })
    case 'minute':
      return new GatewayError('RATE_LIMIT_EXCEEDED', {
        message: `Rate limit exceeded: the plan ${plan} allows ${limits.perMinute} calls a minute.`,
        tokens: { limit: limits.perMinute, ...upgrade },
        retryAfterMs: state.minute.resetMs,
      })
    case 'connection-used':
      return new GatewayError('MONTHLY_QUOTA_EXCEEDED', {
        message: `The account allows this application ${subject.connection?.perMonth} calls a month.`,
        hint: 'Wait for the next month, or connect the application anew with more',
        retryAfterMs: state.month?.resetMs ?? 0,
      })
    default:
      return new GatewayError('MONTHLY_QUOTA_EXCEEDED', {
        message: `The plan ${plan} allows ${limits.perMonth} calls a month.`,
        tokens: { limit: limits.perMonth, ...upgrade },
        retryAfterMs: state.month?.resetMs ?? 0,
      })
  }
}
