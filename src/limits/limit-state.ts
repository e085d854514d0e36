import type { CallLimits } from '../config.ts'
import type { Refund } from '../queue/verdict.ts'

/** What an account has used and what its limits are. */
export interface LimitState {
  /** The time of Redis, milliseconds. */
  now: number
  plan: CallLimits
  /** Calls of the last 60 s. `resetMs`: time until a unit comes back; 0 if none is used. */
  minute: { used: number; resetMs: number }
  /** Absent for test calls. */
  month: { used: number; resetMs: number } | undefined
  inFlight: number
  /**
   * If a limit refuses a call: time until no limit refuses it, milliseconds. For calls in flight it
   * is the time until the first of them is expected to end. 0 if it may end at any moment, or if
   * nothing refuses.
   */
  waitMs: number
  /** Limits that the owner of the credential has set. */
  credential: CredentialState | undefined
}

/** What an account has left after a call has ended and given back its `refund`. */
export function afterRefund(state: LimitState, refund: Refund): LimitState {
  if (refund === 'nothing') return state
  const { minute, month, inFlight, credential } = state
  const one = refund === 'all' ? 1 : 0
  return {
    ...state,
    minute: without(minute, one),
    month: month && { ...month, used: month.used - 1 },
    inFlight: inFlight - one,
    credential: credential && {
      minute: credential.minute && without(credential.minute, one),
      month: credential.month && { ...credential.month, used: credential.month.used - 1 },
      inFlight: credential.inFlight && { ...credential.inFlight, used: credential.inFlight.used - one },
    },
  }
}

function without<T extends { used: number; resetMs: number }>(minute: T, units: number): T {
  return { ...minute, used: minute.used - units, resetMs: minute.used === units ? 0 : minute.resetMs }
}

/**
 * The owner's restrictions of a key or a connection, in addition to the plan; null: the limit of
 * the plan.
 */
export interface CredentialLimits {
  /**
   * Id under which the calls of the key are counted. If the key replaced another key, it is the id
   * of the first key, so that a rotation does not reset the count.
   */
  id: string
  perMinute: number | null
  perMonth: number | null
  inFlight: number | null
}

/** What a key or a connection has used of its own limits. */
interface CredentialState {
  minute: { used: number; max: number; resetMs: number } | undefined
  month: { used: number; max: number } | undefined
  inFlight: { used: number; max: number } | undefined
}

/** A caller whose calls may be counted for its key or connection too. */
interface Credentialed {
  allowance?: CredentialLimits | undefined
  mode: 'live' | 'test'
}

/**
 * Id under which the calls of the credential are counted. Undefined if it has no limits, because
 * nothing is counted then.
 */
export function countedCredential(subject: Credentialed): string | undefined {
  const { allowance } = subject
  return allowance && boundsOf(subject).some((bound) => bound >= 0) ? allowance.id : undefined
}

/**
 * The limits per minute, in flight and per month in the form for the script; -1: no limit. Test
 * calls do not count for the month.
 */
export function boundsOf({ allowance, mode }: Credentialed): number[] {
  const perMonth = mode === 'test' ? null : allowance?.perMonth
  return [allowance?.perMinute ?? -1, allowance?.inFlight ?? -1, perMonth ?? -1]
}

export function credentialState(
  subject: Credentialed,
  [inMinute = 0, inFlight = 0, inMonth = 0, resetMs = 0]: number[],
  { calls, leaseCount }: { calls: number; leaseCount: number },
): CredentialState {
  const [perMinute = -1, inFlightMax = -1, perMonth = -1] = boundsOf(subject)
  return {
    minute: perMinute < 0 ? undefined : { used: inMinute + calls, max: perMinute, resetMs },
    month: perMonth < 0 ? undefined : { used: inMonth + calls, max: perMonth },
    inFlight: inFlightMax < 0 ? undefined : { used: inFlight + leaseCount, max: inFlightMax },
  }
}
