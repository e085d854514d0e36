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
 * States of jobs to read. If a worker died, its jobs stay `active` without a lock until another
 * worker returns them to `waiting`.
 */
const UNENDED_STATES = ['waiting', 'active'] as const

/**
 * Ends the asynchronous calls of a lane that are past their deadline and that no worker has,
 * because no worker serves the lane. It stores the result, counts the usage and refunds units, as a
 * worker would. Otherwise the jobs would stay in Redis, and their units of the month would stay
 * spent, until a worker comes. Several processes may do this at once.
 * @throws what Redis throws; the next look ends the remaining calls
 */
export async function endOverdueCalls(deps: OverdueDeps, lane: Queue): Promise<void> {
  for (const state of UNENDED_STATES) await endOverdueIn(state, deps, lane)
}

async function endOverdueIn(state: (typeof UNENDED_STATES)[number], deps: OverdueDeps, lane: Queue): Promise<void> {
  for (let first = 0; ; ) {
    const jobs = await lane.getJobs(state, first, first + PAGE_JOBS - 1, true)
    // An asynchronous call always has its own job.
    const calls = jobs.flatMap((job) => parseAnswerable(job.data)).filter(({ isAsync }) => isAsync)
    // The time of Redis is read anew, because this process may have just started, and the clock of
    // its machine may be ahead.
    const now = calls.length === 0 ? 0 : await redisNow(deps.redis)
    const overdue = calls.filter(({ deadline }) => deadline + WORKER_GRACE_MS < now)
    let removed = 0
    for (const call of overdue) {
      if (state === 'active' && (await deps.redis.exists(lane.toKey(`${call.id}:lock`))) === 1) continue
      if (await endOverdue(deps, call, lane)) removed += 1
    }
    if (jobs.length < PAGE_JOBS) return
    // If a worker begins with a job meanwhile, the worker keeps it. The job must not be read here
    // again and again.
    first += PAGE_JOBS - removed
  }
}

/**
 * A dead worker may have sent a request. If the request must not be repeated, 503 would be wrong,
 * because it says that nothing was sent.
 */
async function codeOf({ redis, catalog }: OverdueDeps, call: AnswerableCall): Promise<ErrorCode> {
  if (!catalog.mustNotRepeat(call)) return 'DEADLINE_EXCEEDED'
  const isStarted = (await redis.exists(accountKeys.started(call.accountId, call.id))) === 1
  return isStarted ? 'OUTCOME_UNKNOWN' : 'DEADLINE_EXCEEDED'
}

/**
 * Removes the job last, so that an interrupted end is found again. No node waits for a call this
 * long.
 *
 * @returns whether this process removed it
 */
async function endOverdue(deps: OverdueDeps, call: AnswerableCall, lane: Queue): Promise<boolean> {
  const { redis } = deps
  const { id, accountId } = call
  const late: Reply = { head: { id, code: await codeOf(deps, call), times: NO_TIMES }, body: NO_BODY }
  const storing = await storeResult(redis, { id, accountId }, late)
  // The call was cancelled, or ended by a worker that then died.
  const { head } = storing.kind === 'kept' ? late : ((await readResult(redis, call)) ?? late)
  await endAsyncCall(deps, call, { head, reach: reachOf(head) })
  return (await removeCall(lane, id)) !== undefined
}
