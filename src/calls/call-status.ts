import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import { type ReplyHead, wasRequestSent } from '../queue/reply-head.ts'

/** What log and metrics show of a call whose caller left; its usage status too where a request was sent for it. */
export const CALLER_LEFT_STATUS = 499

/** Usage status of a call whose caller left before a request was sent for it. */
export const LEFT_UNSENT_STATUS = 503

/** The status that usage counts a cancelled call under. As any usage status it decides by `isCharged` whether the unit of the month stays spent. */
export function usageStatusOfCancelled(wasSent: boolean): number {
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

/** The status that usage counts a call under by its reply. */
export function usageStatusOfReply(head: Outcome): number {
  return head.code === 'CALL_CANCELLED' ? usageStatusOfCancelled(wasRequestSent(head)) : shownReplyStatus(head)
}
