import type { Tier } from '../catalog/upstream.ts'
import { type ErrorCode, type ErrorDetails, GatewayError } from '../errors.ts'
import type { LimitSubject } from './account-limits.ts'
import type { LimitState } from './limit-state.ts'
import { callsOf, PLAN_OF_TIER } from './plans.ts'

/** A refusal by an account's limits, with the state of the limits for the headers of the answer. */
export class LimitRefusedError extends GatewayError {
  readonly limits: LimitState

  constructor(code: ErrorCode, limits: LimitState, details: Omit<ErrorDetails, 'retryAfterMs'>) {
    super(code, { ...details, retryAfterMs: Math.max(RETRY_MS_MIN, limits.waitMs) })
    this.limits = limits
  }
}

/**
 * Shortest Retry-After of a refusal, milliseconds. A call in flight may end at any time, but
 * clients that come again at once would be refused again and again.
 */
export const RETRY_MS_MIN = 1_000

/**
 * The refusal by the first limit that refuses. Its Retry-After is the time until no limit refuses,
 * because another limit may refuse for longer.
 *
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
        message: `The plan ${name} allows ${callsOf(plan.inFlight)} at once.`,
        tokens: { limit: plan.inFlight, ...upgrade },
      })
    case 'minute':
      return new LimitRefusedError('RATE_LIMIT_EXCEEDED', state, {
        message: `Rate limit exceeded: the plan ${name} allows ${callsOf(plan.perMinute)} a minute.`,
        tokens: { limit: plan.perMinute, ...upgrade },
      })
    case 'month':
      return new LimitRefusedError('MONTHLY_QUOTA_EXCEEDED', state, {
        message: `The plan ${name} allows ${callsOf(plan.perMonth)} a month.`,
        tokens: { limit: plan.perMonth, ...upgrade },
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
  const refuse = (code: ErrorCode, limit = 0, words: { period: string; hint: string }) =>
    new LimitRefusedError(code, state, {
      message: `${who} ${callsOf(limit)} ${words.period}.`,
      hint: words.hint,
      tokens: { limit, limit_of },
    })
  switch (decision) {
    case 'credential-in-flight':
      return refuse('CONCURRENCY_LIMIT_EXCEEDED', inFlight?.max, {
        period: 'under way at once',
        hint: 'Wait for an answer before sending the next call',
      })
    case 'credential-minute':
      return refuse('RATE_LIMIT_EXCEEDED', minute?.max, {
        period: 'a minute',
        hint: 'Wait and send the call again, or ask the owner of the account for more',
      })
    case 'credential-month':
      return refuse('MONTHLY_QUOTA_EXCEEDED', month?.max, {
        period: 'a month',
        hint: 'Wait for the next month, or ask the owner of the account for more',
      })
    default:
      throw new Error(`the limits of a credential do not refuse by "${decision}"`)
  }
}
