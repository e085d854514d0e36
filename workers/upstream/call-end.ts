/** Why a call ends before its answer: reasons of the signals that end it. */

/** Another worker runs the job: its reply is the one. A text, as BullMQ takes it: so a lost lock looks the same everywhere. */
export const LOCK_LOST = 'lock lost'

export const CALLER_LEFT = new Error('caller left')

export const DEADLINE_PASSED = new Error('deadline passed')
