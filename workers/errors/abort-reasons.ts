/** Why a call ends before its answer: reasons of the signals that end it. */

/**
 * Another worker has the job now and sends the reply. A string, as BullMQ's `cancelJob` takes one.
 */
export const LOCK_LOST = 'lock lost'

export const CALLER_LEFT = new Error('caller left')

export const DEADLINE_PASSED = new Error('deadline passed')
