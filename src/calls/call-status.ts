import { GatewayError } from '../errors.ts'

/** Status of a call whose caller left: by `isCharged` its unit of the month stays spent. */
export const CALLER_LEFT_STATUS = 499

/** The same where no request was sent for the call: its unit of the month is given back. */
export const LEFT_UNSENT_STATUS = 503

export function cancelledStatus(wasSent: boolean): number {
  return wasSent ? CALLER_LEFT_STATUS : LEFT_UNSENT_STATUS
}

/** The caller closed the connection. Nobody reads the answer; logs, metrics and console show the code. */
export class CallerLeftError extends GatewayError {
  constructor() {
    super('CALL_CANCELLED', { message: 'The caller left.' })
  }
}

/** What log and metrics show of a call that failed. */
export function shownStatusOf(error: GatewayError): number {
  return error instanceof CallerLeftError ? CALLER_LEFT_STATUS : error.status
}
