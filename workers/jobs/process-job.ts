import { DelayedError, type Job } from 'bullmq'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { isInFlight } from '../../src/limits/end-calls.ts'
import {
  type AnswerableCall,
  type CallJob,
  LaterVersionError,
  parseAnswerable,
  parseCalls,
} from '../../src/queue/call-job.ts'
import { OtherDocumentError, type ProcessorDeps, processCall, replyToLostCall } from './process-call.ts'
import { skipCall } from './run-call.ts'

/** Age of a job's first call from which it is looked up which callers have left, milliseconds. */
const WAITED_MS = 1_000

/**
 * How often a job of a later version is left to a newer worker, and for how long each time,
 * milliseconds.
 */
const HANDED_BACK_MAX = 8
const HAND_BACK_MS = 250

/**
 * Runs the calls of a job independently; a job that runs again leaves out answered calls.
 *
 * @throws what a call threw
 */
export async function processCallJob(deps: ProcessorDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const isSecondRun = job.stalledCounter > 0
  const all = await readCalls(deps, job)
  const hasWaited = deps.clock.now() - (all[0]?.limitsAcquiredAt ?? 0) > WAITED_MS
  const calls = isSecondRun || hasWaited ? await stillWaitedFor(deps, all) : all
  if (calls.length < all.length) for (const call of all) if (!calls.includes(call)) skipCall(deps, call)
  const [only] = calls
  if (only && calls.length === 1) return await processCall(deps, { call: only, isSecondRun }, cancelled)
  const running: Promise<null>[] = []
  for (const call of calls) running.push(processCall(deps, { call, isSecondRun }, cancelled))
  const runs = await Promise.allSettled(running)
  const failed = runs.find((run) => run.status === 'rejected')
  if (failed) throw failed.reason
  return null
}

/** @throws DelayedError where a newer worker may run the job; Error when it cannot be read */
async function readCalls({ catalog }: ProcessorDeps, job: Job): Promise<CallJob[]> {
  try {
    const calls = parseCalls(job.data)
    const other = calls.find((call) => !isSameDocument(catalog, call))
    if (other) throw new OtherDocumentError(`this worker has not loaded the document by which ${other.slug} was called`)
    return calls
  } catch (error) {
    const mayBeOfAnother = error instanceof LaterVersionError || error instanceof OtherDocumentError
    if (!mayBeOfAnother || job.attemptsStarted > HANDED_BACK_MAX) throw error
    await job.moveToDelayed(Date.now() + HAND_BACK_MS, job.token)
    throw new DelayedError()
  }
}

/**
 * What a document allows is checked on an API node: a worker that has loaded another one would send
 * something else.
 */
function isSameDocument(catalog: Catalog, { slug, document }: CallJob): boolean {
  return document === undefined || catalog.get(slug)?.upstream.own?.digest === document
}

/**
 * Answers the calls of a job that outlived too many workers, threw, or is of a version that no
 * worker knows.
 */
export async function replyToLostJob(deps: ProcessorDeps, job: Job, cause: Error): Promise<void> {
  const calls = await stillWaitedFor(deps, parseAnswerable(job.data))
  await Promise.all(calls.map((call) => replyToLostCall(deps, call, cause)))
}

/**
 * Leaves out calls that were answered or whose callers left: their nodes have released their
 * leases.
 */
async function stillWaitedFor<Call extends AnswerableCall>({ redis }: ProcessorDeps, calls: Call[]): Promise<Call[]> {
  const waited = await Promise.all(calls.map((call) => call.isAsync || isInFlight(redis, call)))
  return calls.filter((_, index) => waited[index])
}
