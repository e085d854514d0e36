/** Why a call ends before its answer is there: reasons of the signals that end it. */

/** Another worker runs the job: its reply is the one. */
export const LOCK_LOST = 'lock lost'

/** Nobody waits for the answer any more. */
export const CALLER_LEFT = 'caller left'

/** The call's time is over. */
export const DEADLINE_PASSED = new Error('deadline passed')
