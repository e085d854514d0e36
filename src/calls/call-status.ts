import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import { type ReplyHead, wasRequestSent } from '../queue/reply-head.ts'

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
export function shownErrorStatus(error: GatewayError): number {
  return error instanceof CallerLeftError ? CALLER_LEFT_STATUS : error.status
}

type Outcome = Pick<ReplyHead, 'times' | 'wasSent'> & { code?: ErrorCode | undefined }

/** What log and metrics show of a call by its reply. */
export function shownReplyStatus({ code }: Pick<Outcome, 'code'>): number {
  if (code === 'CALL_CANCELLED') return CALLER_LEFT_STATUS
  return code ? ERRORS[code].status : 200
}

/** What usage counts of a call by its reply: by `isCharged` it decides whether the unit of the month stays spent. */
export function chargedReplyStatus(head: Outcome): number {
  return head.code === 'CALL_CANCELLED' ? cancelledStatus(wasRequestSent(head)) : shownReplyStatus(head)
}
