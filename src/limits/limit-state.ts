import type { CallLimits } from '../config.ts'
import type { Refund } from '../queue/verdict.ts'

/** What an account has used and may use. */
export interface LimitState {
  /** Redis time, milliseconds. */
  now: number
  plan: CallLimits
  /** Of the last 60 s. `resetMs`: until a unit comes back; 0 if none is used. */
  minute: { used: number; resetMs: number }
  /** Absent for test calls. */
  month: { used: number; resetMs: number } | undefined
  inFlight: number
  /**
   * If the calls in flight refuse a call: until the first of them is expected to end, milliseconds;
   * 0: at any moment, or nothing refuses.
   */
  nextEndMs: number
  /** The limits that the owner of the credential set. */
  credential: CredentialState | undefined
}

/** What an account has left once a call that ended has given back its `refund`. */
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
 * What an owner allows a key or a connection beside the limits of the plan; null: as much as the
 * plan.
 */
export interface CredentialLimits {
  /**
   * Id under which the calls of the key are counted. If the key replaced another key, it is the id
   * of the first key, so that a replacement begins no new count.
   */
  id: string
  perMinute: number | null
  perMonth: number | null
  inFlight: number | null
}

/** What the calls of a key or a connection have used of limits of its own. */
export interface CredentialState {
  minute: { used: number; max: number; resetMs: number } | undefined
  month: { used: number; max: number } | undefined
  inFlight: { used: number; max: number } | undefined
}

/** Whose calls are counted. */
interface Credentialed {
  allowance?: CredentialLimits | undefined
  mode: 'live' | 'test'
}

/**
 * Id under which the calls of the credential are counted. Undefined if it has no limits, because
 * then nothing is counted for it.
 */
export function countedCredential(subject: Credentialed): string | undefined {
  const { allowance } = subject
  return allowance && boundsOf(subject).some((bound) => bound >= 0) ? allowance.id : undefined
}

/**
 * Calls a minute, in flight and a month, as the script takes them; -1: no bound. Test calls count
 * for no month.
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
