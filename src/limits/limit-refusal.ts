import type { Tier } from '../catalog/upstream.ts'
import { type ErrorCode, type ErrorDetails, GatewayError } from '../errors.ts'
import type { LimitSubject } from './account-limits.ts'
import type { LimitState } from './limit-state.ts'
import { PLAN_OF_TIER } from './plans.ts'

/** A refusal by an account's limits, with the state of the limits for the headers of the answer. */
export class LimitRefusedError extends GatewayError {
  readonly limits: LimitState

  constructor(code: ErrorCode, limits: LimitState, details: ErrorDetails) {
    super(code, details)
    this.limits = limits
  }
}

/**
 * Shortest Retry-After if too many calls are in flight, milliseconds. A call may end at any time,
 * but clients that come again at once would be refused again and again.
 */
export const RETRY_MS_MIN = 1_000

/**
 * @param decision the limit that refused, as the script names it
 * @throws Error if the decision is not a refusal
 */
export function limitRefusal(
  decision: string,
  state: LimitState,
  { tier, subject }: { tier: Tier; subject: LimitSubject },
): LimitRefusedError {
  const upgrade = tier === 'developer' ? { upgrade_to: 'pro' } : tier === 'pro' ? { upgrade_to: 'business' } : {}
  const name = PLAN_OF_TIER[tier]
  const { plan } = state
  if (decision.startsWith('credential-')) return credentialRefusal(decision, state, subject)
  switch (decision) {
    case 'in-flight':
      return new LimitRefusedError('CONCURRENCY_LIMIT_EXCEEDED', state, {
        message: `The plan ${name} allows ${plan.inFlight} calls at once.`,
        tokens: { limit: plan.inFlight, ...upgrade },
        retryAfterMs: Math.max(RETRY_MS_MIN, state.nextEndMs),
      })
    case 'minute':
      return new LimitRefusedError('RATE_LIMIT_EXCEEDED', state, {
        message: `Rate limit exceeded: the plan ${name} allows ${plan.perMinute} calls a minute.`,
        tokens: { limit: plan.perMinute, ...upgrade },
        retryAfterMs: state.minute.resetMs,
      })
    case 'month':
      return new LimitRefusedError('MONTHLY_QUOTA_EXCEEDED', state, {
        message: `The plan ${name} allows ${plan.perMonth} calls a month.`,
        tokens: { limit: plan.perMonth, ...upgrade },
        retryAfterMs: state.month?.resetMs ?? 0,
      })
    default:
      throw new Error(`the limits of an account do not refuse by "${decision}"`)
  }
}

/**
 * The codes of the account's limits, with words for limits that the credential's owner set. A
 * higher plan would not help.
 */
function credentialRefusal(decision: string, state: LimitState, { connection }: LimitSubject): LimitRefusedError {
  const { minute, month, inFlight } = state.credential ?? {}
  const [who, limit_of] = connection
    ? ['The account allows this application', 'application']
    : ['This key allows', 'key']
  const refuse = (
    code: ErrorCode,
    max: number | undefined,
    words: { of: string; hint: string; retryAfterMs: number },
  ) =>
    new LimitRefusedError(code, state, {
      message: `${who} ${max} ${words.of}.`,
      hint: words.hint,
      tokens: { ...(max === undefined ? {} : { limit: max }), limit_of },
      retryAfterMs: words.retryAfterMs,
    })
  switch (decision) {
    case 'credential-in-flight':
      return refuse('CONCURRENCY_LIMIT_EXCEEDED', inFlight?.max, {
        ...{ of: 'calls under way at once', hint: 'Wait for an answer before sending the next call' },
        retryAfterMs: Math.max(RETRY_MS_MIN, state.nextEndMs),
      })
    case 'credential-minute':
      return refuse('RATE_LIMIT_EXCEEDED', minute?.max, {
        ...{ of: 'calls a minute', hint: 'Wait and send the call again, or ask the owner of the account for more' },
        retryAfterMs: minute?.resetMs ?? 0,
      })
    case 'credential-month':
      return refuse('MONTHLY_QUOTA_EXCEEDED', month?.max, {
        ...{ of: 'calls a month', hint: 'Wait for the next month, or ask the owner of the account for more' },
        retryAfterMs: state.month?.resetMs ?? 0,
      })
    default:
      throw new Error(`the limits of a credential do not refuse by "${decision}"`)
  }
}
