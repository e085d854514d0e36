import type { Job } from 'bullmq'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { bucketOf } from '../../src/caps/bucket.ts'
import { memberOf, type QueueEntry } from '../../src/caps/queue-entry.ts'
import type { Api, ApiEndpoint, Catalog } from '../../src/catalog/catalog.ts'
import type { Db } from '../../src/db/database.ts'
import { ERRORS, GatewayError } from '../../src/errors.ts'
import { monthOf, releaseLimits } from '../../src/limits/account-limits.ts'
import { CALLER_LEFT_STATUS } from '../../src/limits/settlement-batcher.ts'
import { recordUsage } from '../../src/limits/usage-ledger.ts'
import { type CallJob, parseCallJob } from '../../src/queue/call-job.ts'
import type { CallQueues } from '../../src/queue/call-queue.ts'
import type { CallTimes, ReplyHead } from '../../src/queue/frame.ts'
import { hasResult, RESULT_BYTES_MAX, readResult, sendReply, storeResult } from '../../src/queue/reply.ts'
import { enqueueValidateKey } from '../../src/queue/validate-key-job.ts'
import { type CachedOutcome, type CachingDeps, callThroughCache } from '../cache/cached-call.ts'
import { AttemptError } from '../upstream/attempt-error.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import type { ProviderKeys } from '../upstream/provider-keys.ts'
import { resolveUpstreamKey } from '../upstream/upstream-key.ts'
import { answerFromExample } from './example-answer.ts'

export interface ProcessorDeps extends CachingDeps {
  catalog: Catalog
  db: Db
  queues: CallQueues
  providerKeys: ProviderKeys
}

const NO_BODY = Buffer.alloc(0)

/** Why a job is cancelled whose lock was lost: another worker runs it, and its reply is the one. */
export const LOCK_LOST = 'lock lost'

/** Why a call ends at its deadline. */
const DEADLINE_PASSED = new Error('deadline passed')

/** Why a job is cancelled whose caller left. */
export const CALLER_LEFT = 'caller left'

/**
 * Runs one job: deadline, cache, permit, attempts, reply. Assume that it runs twice: a reply too many is dropped by its
 * node, and an endpoint that is not idempotent is not called again. Every way out sends a reply, but for a lost lock.
 *
 * @returns null: a return value would be kept in Redis
 */
export async function processCall(sources: ProcessorDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const call = parseCallJob(job.data)
  const { clock } = sources
  const times: CallTimes = {
    queueMs: Math.max(0, clock.now() - call.enqueuedAt),
    permitMs: 0,
    upstreamMs: 0,
    attempts: 0,
  }
  const { signal, dispose } = endOf(call.deadline - clock.now(), cancelled)
  try {
    const result = await run(sources, call, times, job.stalledCounter > 0, signal).catch((error): CachedOutcome => {
      if (cancelled.reason === LOCK_LOST) throw new Error(LOCK_LOST)
      return { outcome: toOutcome(error) }
    })
    await answer(sources, call, times, result)
    // What was served stale is refreshed now; nobody waits for it, and the next call sees whether it went well.
    await result
      .afterwards?.()
      .catch((error) => sources.log.debug({ err: error, callId: call.id }, 'answer not refreshed'))
    return null
  } finally {
    dispose()
  }
}

/**
 * The call's end, at its deadline or when it is cancelled. One controller and one timer: AbortSignal.timeout() and
 * any() cost several times as much, on every call.
 */
function endOf(remainingMs: number, cancelled: AbortSignal): { signal: AbortSignal; dispose: () => void } {
  const end = new AbortController()
  const onCancelled = (): void => end.abort(cancelled.reason)
  const timer = setTimeout(() => end.abort(DEADLINE_PASSED), Math.max(0, Math.ceil(remainingMs)))
  cancelled.addEventListener('abort', onCancelled, { once: true })
  if (cancelled.aborted) onCancelled()
  return {
    signal: end.signal,
    dispose: () => {
      clearTimeout(timer)
      cancelled.removeEventListener('abort', onCancelled)
    },
  }
}

/** Answers a call whose job failed without a word of its own: it outlived too many workers, or cannot be read. */
export async function answerLost(sources: ProcessorDeps, job: Job): Promise<void> {
  const times: CallTimes = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const outcome: Outcome = { code: 'INTERNAL_ERROR', cause: new Error(job.failedReason) }
  await answer(sources, parseCallJob(job.data), times, { outcome })
}

async function answer(sources: ProcessorDeps, call: CallJob, times: CallTimes, result: CachedOutcome): Promise<void> {
  const { redis, log } = sources
  const { outcome, cacheStatus, ageSeconds } = result
  let head: ReplyHead = {
    id: call.id,
    times,
    ...(cacheStatus === undefined ? {} : { cacheStatus }),
    ...(ageSeconds === undefined ? {} : { ageSeconds }),
  }
  let body: Buffer = NO_BODY
  if (isFailure(outcome)) {
    const { cause, ...told } = outcome
    if (cause) log.info({ callId: call.id, slug: call.slug, code: told.code, err: cause }, 'call failed')
    Object.assign(head, told)
  } else {
    body = outcome.body
  }
  if (call.isAsync) {
    if (body.length > RESULT_BYTES_MAX) {
      head.code = 'UPSTREAM_TOO_LARGE'
      body = NO_BODY
    }
    // The job may run twice: what the first run kept is what the caller is told, and what is counted.
    const earlier = (await storeResult(redis, head, body)) ? undefined : await readResult(redis, call.id)
    if (earlier) ({ head, body } = earlier)
    const status = settledStatus(head)
    const month = monthOf(call.enqueuedAt).name
    if ((await releaseLimits(redis, call, month, [{ callId: call.id, status }])) === 1) {
      await recordUsage(redis, [{ call, status }])
      const { id: callId, accountId: account, slug, endpoint, mode } = call
      log.info({ callId, account, slug, endpoint, mode, status, code: head.code, ...times }, 'asynchronous call ended')
    }
  }
  await sendReply(redis, call.replyTo, head, body)
}

function settledStatus({ code }: ReplyHead): number {
  if (code === 'CALL_CANCELLED') return CALLER_LEFT_STATUS
  return code ? ERRORS[code].status : 200
}

async function run(
  sources: ProcessorDeps,
  call: CallJob,
  times: CallTimes,
  isSecondRun: boolean,
  signal: AbortSignal,
): Promise<CachedOutcome> {
  const api = sources.catalog.get(call.slug)
  const endpoint = api?.endpoints.get(call.endpoint)
  if (!api || !endpoint) {
    return { outcome: { code: 'INTERNAL_ERROR', cause: new Error('this worker does not know the endpoint') } }
  }
  const remainingMs = () => call.deadline - sources.clock.now()
  if (remainingMs() <= 0) return { outcome: { code: 'DEADLINE_EXCEEDED' } }
  // Cancelled before this job became active, or ended by an earlier run: no request is to be made for it. A cancel after
  // this look finds the job active and aborts it.
  if (call.isAsync && (await hasResult(sources.redis, call.id))) return { outcome: { code: 'CALL_CANCELLED' } }
  if (isSecondRun && endpoint.endpoint.idempotent === false) {
    return {
      outcome: {
        code: 'UPSTREAM_ERROR',
        message: 'A worker was lost during the call; whether it took effect is not known.',
      },
    }
  }
  try {
    if (call.mode === 'test') return { outcome: await answerFromExample(api, endpoint, call, signal) }
    return await runLive(sources, api, endpoint, call, { times, remainingMs, signal })
  } catch (error) {
    if (signal.reason === DEADLINE_PASSED) return { outcome: { code: 'DEADLINE_EXCEEDED' } }
    throw error
  }
}

async function runLive(
  sources: ProcessorDeps,
  api: Api,
  { endpoint }: ApiEndpoint,
  call: CallJob,
  bounds: { times: CallTimes; remainingMs: () => number; signal: AbortSignal },
): Promise<CachedOutcome> {
  const bucket = bucketOf(call)
  const permit = { member: memberOf({ accountId: call.accountId, callId: call.id }), tag: call.place?.tag ?? 0 }
  try {
    const upstreamKey = await resolveUpstreamKey(sources, api, call)
    const result = await callThroughCache(sources, { endpoint, call, ...upstreamKey, permit, ...bounds })
    return call.providerKey ? withRefusedKey(sources, call, call.providerKey.id, result) : result
  } finally {
    if (call.place && bounds.times.attempts === 0) {
      // It had no permit, for it ended before its turn or needed none: its place goes to the next.
      const waiting: QueueEntry = {
        callId: call.id,
        accountId: call.accountId,
        weight: call.place.weight,
        slug: call.slug,
        bucket,
        flightKey: cacheKeys(endpoint, call, bucket)?.flight,
      }
      sources.caps
        .of(api, bucket)
        .leaveQueue(waiting)
        .catch((cause) => sources.log.debug({ err: cause }, 'failed to dequeue a call'))
    }
  }
}

/** A refusal of the caller's own key is the caller's to mend; whether it is refused for good is asked once more. */
function withRefusedKey(
  { queues, log }: ProcessorDeps,
  call: CallJob,
  providerKeyId: string,
  result: CachedOutcome,
): CachedOutcome {
  const { outcome } = result
  if (!isFailure(outcome) || outcome.code !== 'UPSTREAM_AUTH_FAILED') return result
  enqueueValidateKey(queues, call.slug, { v: 1, providerKeyId }).catch((error) =>
    log.warn({ err: error, callId: call.id }, 'validation of a refused key not queued'),
  )
  return { ...result, outcome: { code: 'PROVIDER_KEY_INVALID', cause: outcome.cause } }
}

function toOutcome(error: unknown): Outcome {
  if (error instanceof AttemptError) return { code: error.code, cause: error.cause }
  if (error instanceof GatewayError) return { code: error.code, message: error.message }
  return { code: 'INTERNAL_ERROR', cause: error }
}
