import type { CallLimits } from '../config.ts'
import type { Refund } from '../queue/verdict.ts'
import type { CredentialState } from './limits-of-credential.ts'

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
