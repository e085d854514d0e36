import { spanWords } from '../catalog/limit-words.ts'
import type { ErrorCode } from '../errors.ts'
import { HALF_OPEN_PAUSE_MS_MAX, HALF_OPEN_PAUSE_MS_MIN } from '../health/health-thresholds.ts'

/** The usual cause of an error and its fix, in more detail than the hint. */
export interface ErrorHelp {
  causes: string[]
  fix: string
}

export const help = (fix: string, ...causes: string[]): ErrorHelp => ({ causes, fix })

const BACK_OFF = 'Wait for Retry-After, then send the call again; back off further if it fails again.'

/**
 * Help for the codes of 500, 502 and 503: the request was right, and the source or the gateway
 * failed.
 */
export const FAILURE_HELP = {
  INTERNAL_ERROR: help(
    'Retry once. If the call fails again, send the operator the X-Request-Id of the answer.',
    'The gateway has a fault. The request is not the cause.',
  ),
  UPSTREAM_ERROR: help(
    BACK_OFF,
    'The source answered with a server error, or the connection to it broke.',
    'The source has moved to another address, or refuses the gateway: it answered with a 404 that does not mean “not found”, or with a 403 to a request without a key. If so, a retry does not help, and the hint states this.',
    'The source sent 100 Continue without a request for it, so the gateway closed the connection.',
    'All retries within the time of the call failed too.',
  ),
  UPSTREAM_TIMEOUT: help(BACK_OFF, 'The source received the request and did not answer in time.'),
  OUTCOME_UNKNOWN: help(
    'Check at the source whether the change was made, and send the call again only if it was not.',
    'The call changes something at the source. The source received the request but did not answer, or answered with a server error, or the worker of the call ended unexpectedly.',
  ),
  UPSTREAM_INVALID_RESPONSE: help(BACK_OFF, 'The source sent HTML, incomplete JSON, or JSON of another structure.'),
  UPSTREAM_TOO_LARGE: help(
    'Request fewer results or a shorter period.',
    'The answer is larger than the gateway accepts.',
  ),
  UPSTREAM_REDIRECT_BLOCKED: help(
    'Tell the operator that the source moved.',
    'The source redirects to another address.',
  ),
  UPSTREAM_AUTH_FAILED: help(
    'Tell the operator that the source refuses the gateway.',
    'The operator’s key has expired or was revoked.',
    'The source does not use keys, and refuses the address or the User-Agent of the gateway.',
  ),
  UPSTREAM_RATE_LIMITED: help(BACK_OFF, 'The source limits the gateway, or only the values of your calls.'),
  UPSTREAM_UNAVAILABLE: help(
    'Wait for Retry-After; the page of the API shows since when the source is down.',
    `The source failed several times in a row. The gateway refuses calls at once, and tries the source again after a pause that grows from ${spanWords(HALF_OPEN_PAUSE_MS_MIN / 1_000)} to ${spanWords(HALF_OPEN_PAUSE_MS_MAX / 1_000)}.`,
  ),
  UPSTREAM_CAP_EXHAUSTED: help(
    'Wait for Retry-After, or send the call with Prefer: respond-async, which may wait ten minutes.',
    'All callers together have used the cap of the source, and the next slot comes too late for this call. Retry-After is exact.',
    'Your account has used its fair share while other accounts call too; the message then states this. Retry-After is an estimate.',
  ),
  API_NOT_ENABLED: help(
    'Ask the operator. Test keys work if the plan includes the API.',
    'The source needs a key that the operator has not set.',
    'The operator has disabled the API.',
    'No running worker has loaded the API; the message then states this.',
  ),
  API_PAUSED: help(
    'Wait until the operator resumes the API. Test keys are refused too.',
    'The operator has paused the API, for example during an incident at the source.',
  ),
  OVERLOADED: help(
    BACK_OFF,
    'More calls wait for the source than it can answer in time, because it answers slowly at the moment.',
    'The Redis of the gateway is full, or cannot write to its disk.',
    'The gateway has no room for answers to the account or for stored results at the moment.',
  ),
  DEADLINE_EXCEEDED: help(
    'Send the call again, with Prefer: respond-async if the call may take long.',
    'The call waited in the queue until its time limit.',
  ),
  DEPENDENCY_UNAVAILABLE: help(
    BACK_OFF,
    'The Redis or the Postgres of the gateway does not answer.',
    'The gateway cannot send a mail to verify an email address, because the mail server does not answer or refuses the mail. The message states the reason.',
  ),
  DRAINING: help('Send the request again: another node will answer.', 'The node is shutting down.'),
} satisfies Partial<Record<ErrorCode, ErrorHelp>>
