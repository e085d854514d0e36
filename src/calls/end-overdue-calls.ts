import type { Queue } from 'bullmq'
import type { Catalog } from '../catalog/catalog.ts'
import type { ErrorCode } from '../errors.ts'
import { type AnswerableCall, parseAnswerable } from '../queue/call-job.ts'
import { removeCall } from '../queue/call-queue.ts'
import { NO_BODY, NO_TIMES, type Reply, reachOf } from '../queue/reply-head.ts'
import { readResult, storeResult } from '../queue/results.ts'
import { redisNow } from '../redis/clock.ts'
import { accountKeys } from '../redis/keys.ts'
import { type EndDeps, endAsyncCall } from './end-async-call.ts'

export interface OverdueDeps extends EndDeps {
  catalog: Catalog
}

/** How long after its deadline a call is left to its worker, milliseconds. */
const WORKER_GRACE_MS = 5_000

const PAGE_JOBS = 100

/**
 * The jobs of a lost worker stay `active` without a lock, until another worker returns them to
 * `waiting`.
 */
const UNENDED_STATES = ['waiting', 'active'] as const

/**
 * Ends the asynchronous calls of a lane that are past their deadline and that no worker has,
 * because nobody serves the lane: with result, usage and refund, as a worker would. Otherwise their
 * jobs would stay in Redis, and their units of the month stay spent, until a worker comes. Several
 * processes may do so at once.
 * @throws what Redis throws: what was not ended is ended by the next look
 */
export async function endOverdueCalls(deps: OverdueDeps, lane: Queue): Promise<void> {
  for (const state of UNENDED_STATES) await endOverdueIn(state, deps, lane)
}

async function endOverdueIn(state: (typeof UNENDED_STATES)[number], deps: OverdueDeps, lane: Queue): Promise<void> {
  for (let first = 0; ; ) {
    const jobs = await lane.getJobs(state, first, first + PAGE_JOBS - 1, true)
    // An asynchronous call has a job of its own.
    const calls = jobs.flatMap((job) => parseAnswerable(job.data)).filter(({ isAsync }) => isAsync)
    // The time of Redis, read anew, because this process may just have begun, and the clock of its
    // machine may be ahead.
    const now = calls.length === 0 ? 0 : await redisNow(deps.redis)
    const overdue = calls.filter(({ deadline }) => deadline + WORKER_GRACE_MS < now)
    let removed = 0
    for (const call of overdue) {
      if (state === 'active' && (await deps.redis.exists(lane.toKey(`${call.id}:lock`))) === 1) continue
      if (await endOverdue(deps, call, lane)) removed += 1
    }
    if (jobs.length < PAGE_JOBS) return
    // A worker that begins with a job meanwhile keeps it: it must not be read here again and again.
    first += PAGE_JOBS - removed
  }
}

/**
 * A worker that was lost may have sent a request, and of a request that is never repeated 503 says
 * that nothing was sent.
 */
async function codeOf({ redis, catalog }: OverdueDeps, call: AnswerableCall): Promise<ErrorCode> {
  if (!catalog.mustNotRepeat(call)) return 'DEADLINE_EXCEEDED'
  const isStarted = (await redis.exists(accountKeys.started(call.accountId, call.id))) === 1
  return isStarted ? 'OUTCOME_UNKNOWN' : 'DEADLINE_EXCEEDED'
}

/**
 * The job goes last, so that what was cut off is found again. No node waits for a call so long.
 *
 * @returns whether it was there to go
 */
async function endOverdue(deps: OverdueDeps, call: AnswerableCall, lane: Queue): Promise<boolean> {
  const { redis } = deps
  const { id, accountId } = call
  const late: Reply = { head: { id, code: await codeOf(deps, call), times: NO_TIMES }, body: NO_BODY }
  const storing = await storeResult(redis, { id, accountId }, late)
  // Cancelled, or ended by a worker that was then lost.
  const { head } = storing.kind === 'kept' ? late : ((await readResult(redis, call)) ?? late)
  await endAsyncCall(deps, call, { head, reach: reachOf(head) })
  return (await removeCall(lane, id)) !== undefined
}
