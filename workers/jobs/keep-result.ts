import type { AnswerableCall } from '../../src/queue/call-job.ts'
import { NO_BODY, type Reply } from '../../src/queue/reply-head.ts'
import { RESULT_BYTES_MAX, readResult, storeForEarlierNode, storeResult } from '../../src/queue/results.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** The size of an error. An outcome this small is stored however full Redis is. */
const SMALL_BYTES = 2_048

const SHORT_OF_MEMORY_MS = 60_000

/**
 * Keeps an asynchronous call's outcome. Without room for the body the outcome says so: 429 for the
 * account's share, 503 if Redis is short of memory. An outcome without a body takes no more than
 * such a refusal, and is always kept.
 * @returns what is kept: an earlier run's, if the job ran twice
 */
export async function keepResult(
  deps: Pick<WorkerDeps, 'redis' | 'headroom'>,
  call: AnswerableCall,
  reply: Reply,
): Promise<Reply> {
  const { redis } = deps
  const { resultBytesMax } = call
  const fitting = await withoutLargeBody(deps, reply)
  // A job of the earlier version has no limit. @until 0.4.0
  if (resultBytesMax === undefined) await storeForEarlierNode(redis, fitting)
  const bytesMax = fitting.body.length === 0 ? undefined : resultBytesMax
  const storing = await storeResult(redis, { ...call, bytesMax }, fitting)
  if (storing.kind === 'kept') return fitting
  if (storing.kind === 'full') {
    const { retryAfterMs } = storing
    const { id, times } = reply.head
    const refused: Reply = { head: { id, times, code: 'RESULT_STORAGE_FULL', retryAfterMs }, body: NO_BODY }
    if ((await storeResult(redis, call, refused)).kind === 'kept') return refused
  }
  return (await readResult(redis, call)) ?? fitting
}

async function withoutLargeBody({ headroom }: Pick<WorkerDeps, 'headroom'>, reply: Reply): Promise<Reply> {
  const { head, body } = reply
  if (body.length > RESULT_BYTES_MAX) return { head: { ...head, code: 'UPSTREAM_TOO_LARGE' }, body: NO_BODY }
  if (body.length <= SMALL_BYTES || !(await headroom.isShort())) return reply
  return { head: { ...head, code: 'OVERLOADED', retryAfterMs: SHORT_OF_MEMORY_MS }, body: NO_BODY }
}
