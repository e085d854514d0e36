import type { Job } from 'bullmq'
import { isInFlight } from '../../src/limits/account-limits.ts'
import { type CallJob, parseCalls } from '../../src/queue/call-job.ts'
import { type ProcessorDeps, processCall, replyToLostCall } from './process-call.ts'
import { skipCall } from './run-call.ts'

/** Age from which a shared job looks for callers that left, milliseconds. */
const WAITED_MS = 1_000

/** Runs the calls of a job independently; a job that runs again leaves out answered calls. @throws what a call threw */
export async function processCallJob(deps: ProcessorDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const isSecondRun = job.stalledCounter > 0
  const all = parseCalls(job.data)
  const hasWaited = deps.clock.now() - (all[0]?.enqueuedAt ?? 0) > WAITED_MS
  const calls = isSecondRun || hasWaited ? await stillWaitedFor(deps, all) : all
  for (const call of all) if (!calls.includes(call)) skipCall(deps, call)
  const [only] = calls
  if (only && calls.length === 1) return await processCall(deps, { call: only, isSecondRun }, cancelled)
  const runs = await Promise.allSettled(calls.map((call) => processCall(deps, { call, isSecondRun }, cancelled)))
  const failed = runs.find((run) => run.status === 'rejected')
  if (failed) throw failed.reason
  return null
}

/** Answers the calls of a job that outlived too many workers or threw. @throws Error when the job cannot be read */
export async function replyToLostJob(deps: ProcessorDeps, job: Job, cause: Error): Promise<void> {
  const calls = await stillWaitedFor(deps, parseCalls(job.data))
  await Promise.all(calls.map((call) => replyToLostCall(deps, call, cause)))
}

/** Leaves out calls that were answered or whose callers left: their nodes have released their leases. */
async function stillWaitedFor({ redis }: ProcessorDeps, calls: CallJob[]): Promise<CallJob[]> {
  const waited = await Promise.all(calls.map((call) => call.isAsync || isInFlight(redis, call)))
  return calls.filter((_, index) => waited[index])
}
