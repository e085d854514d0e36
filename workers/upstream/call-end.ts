/** Why a call ends before its answer: reasons of the signals that end it. */

/** Another worker runs the job: its reply is the one. */
export const LOCK_LOST = 'lock lost'

export const CALLER_LEFT = 'caller left'

export const DEADLINE_PASSED = new Error('deadline passed')
