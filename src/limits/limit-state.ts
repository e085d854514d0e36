import type { CallLimits } from '../config.ts'
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

/** What an account has left once the month's unit of a call that failed is given back. */
export function afterMonthRefund(state: LimitState): LimitState {
  const { month, credential } = state
  const ofCredential = credential?.month
  return {
    ...state,
    month: month && { ...month, used: month.used - 1 },
    credential: credential && {
      ...credential,
      month: ofCredential && { ...ofCredential, used: ofCredential.used - 1 },
    },
  }
}

/** What an account has left once all that a call took is given back. */
export function afterRefund(state: LimitState): LimitState {
  const { credential, ...rest } = afterMonthRefund(state)
  const { minute, inFlight } = credential ?? {}
  return {
    ...rest,
    minute: withoutUnit(state.minute),
    inFlight: state.inFlight - 1,
    credential: credential && {
      ...credential,
      minute: minute && withoutUnit(minute),
      inFlight: inFlight && { ...inFlight, used: inFlight.used - 1 },
    },
  }
}

function withoutUnit<T extends { used: number; resetMs: number }>(minute: T): T {
  return { ...minute, used: minute.used - 1, resetMs: minute.used === 1 ? 0 : minute.resetMs }
}
