import type { Job } from 'bullmq'
import { bucketOf } from '../caps/bucket.ts'
import { type AnswerableCall, parseAnswerable, storedCalls } from '../queue/call-job.ts'
import { CALL_JOB } from '../queue/call-queue.ts'
import { memberOf, waitQueueIdentity } from '../queue/wait-queue-entry.ts'
import type { RowDeps } from './upstream-rows.ts'

/** Jobs read of each state at most, and failed ones. */
const JOBS_MAX = 200
const FAILED_MAX = 20

/** Waiting calls whose place is read at most. */
const WAITING_MAX = 1_000

/** Longest text of a job that is shown, characters. */
const TEXT_MAX = 200

/** What the queue of one API holds, as of one instant. Times are milliseconds. */
export interface QueueContents {
  /** Calls of the jobs that were read: those at workers, then the others in the order in which they are served. */
  calls: QueuedCall[]
  /** Whether there are more jobs than were read. */
  isCut: boolean
  /** Probes and key validations: those that run or wait, and when the next scheduled ones are due. */
  others: { name: string; isRunning: boolean; dueInMs: number }[]
  /** Jobs that ended by a defect of the gateway, newest first; a call that fails is answered and is none of them. */
  failed: { id: string; name: string; at: number; reason: string }[]
}

/** Where a call is. A worker takes jobs ahead of their permits. */
export const CALL_STATES = ['under-way', 'waiting-for-cap', 'waiting-for-worker'] as const

export type CallState = (typeof CALL_STATES)[number]

export interface QueuedCall {
  id: string
  accountId: string
  /** Null where Postgres does not know the account or does not answer. */
  email: string | null
  endpoint: string
  mode: 'live' | 'test'
  isAsync: boolean
  /** It uses a key of its caller, which has a cap of its own. */
  hasOwnKey: boolean
  state: CallState
  /** How many calls the cap lets go before this one; null: it waits for no permit. */
  ahead: number | null
  waitedMs: number
  /** Until its deadline; below zero it is over. */
  leftMs: number
  /** Declared ones, long values cut. */
  parameters: [name: string, value: string][]
  /** Names of undeclared ones, whose values may be anything and are not shown. */
  undeclared: string[]
}

/** Reads the jobs of an API's queue and the wait queues of its caps. @throws what Redis throws */
export async function readQueueContents(
  { queues, caps, health }: Pick<RowDeps, 'queues' | 'caps' | 'health'>,
  slug: string,
): Promise<QueueContents> {
  const queue = queues.of(slug)
  const at = health.now()
  const [active, prioritized, waiting, delayed, failed] = await Promise.all([
    queue.getJobs('active', 0, JOBS_MAX - 1, true),
    queue.getJobs('prioritized', 0, JOBS_MAX - 1, true),
    queue.getJobs('waiting', 0, JOBS_MAX - 1, true),
    queue.getJobs('delayed', 0, JOBS_MAX - 1, true),
    queue.getJobs('failed', 0, FAILED_MAX - 1),
  ])
  // A job that ended while they were read is undefined.
  const known = (jobs: (Job | undefined)[]): Job[] => jobs.filter((job) => job !== undefined)
  const queued = [...known(waiting), ...known(prioritized)]
  const calls = [
    ...known(active).flatMap((job) => callsOf(job, 'under-way', at)),
    ...queued.flatMap((job) => callsOf(job, 'waiting-for-worker', at)),
  ]
  const buckets = [...new Set(calls.map(({ bucket }) => bucket))]
  const members = await Promise.all(buckets.map((bucket) => caps.of({ slug }, bucket).queuedMembers(WAITING_MAX)))
  const places = new Map(members.flatMap((inOrder) => inOrder.map((member, place) => [member, place] as const)))
  const other = (jobs: Job[], isRunning: boolean) =>
    jobs
      .filter(({ name }) => name !== CALL_JOB)
      .map(({ name, timestamp, delay }) => ({
        name,
        isRunning,
        dueInMs: isRunning ? 0 : Math.max(0, timestamp + delay - at),
      }))
  return {
    calls: calls
      .map(({ member, bucket: _, ...call }) => {
        const ahead = places.get(member)
        if (ahead === undefined) return { ...call, email: null, ahead: null }
        return { ...call, email: null, ahead, state: 'waiting-for-cap' as const }
      })
      .sort((a, b) => orderOf(a) - orderOf(b) || b.waitedMs - a.waitedMs),
    isCut: [active, prioritized, waiting].some(({ length }) => length === JOBS_MAX),
    others: [...other(known(active), true), ...other([...queued, ...known(delayed)], false)],
    failed: known(failed).map(({ id = '', name, finishedOn = 0, failedReason = '' }) => ({
      id,
      name,
      at: finishedOn,
      reason: cut(failedReason),
    })),
  }
}

/** Calls that run, then those that wait for a permit, first come those that are served first. */
function orderOf({ state, ahead }: QueuedCall): number {
  if (ahead !== null) return ahead
  return state === 'under-way' ? -1 : Number.MAX_SAFE_INTEGER
}

type FoundCall = Omit<QueuedCall, 'ahead' | 'email'> & { member: string; bucket: string }

function callsOf({ name, data }: Job, state: CallState, at: number): FoundCall[] {
  if (name !== CALL_JOB) return []
  return storedCalls(data).flatMap((stored) =>
    // Of a later version too, as far as this one knows it.
    parseAnswerable(stored).map((call) => foundCall(call, stored, { state, at })),
  )
}

function foundCall(call: AnswerableCall, stored: unknown, { state, at }: { state: CallState; at: number }): FoundCall {
  const { group, parameters, extra, providerKey } = Object(stored)
  const { scope, isUnproven } = Object(providerKey)
  const ownKey =
    typeof scope === 'string' ? { id: '', bucket: scope, ...(isUnproven ? { isUnproven } : {}) } : undefined
  return {
    id: call.id,
    accountId: call.accountId,
    endpoint: call.endpoint,
    mode: call.mode,
    isAsync: call.isAsync,
    hasOwnKey: providerKey !== undefined,
    state,
    waitedMs: Math.max(0, at - call.limitsAcquiredAt),
    leftMs: call.deadline - at,
    parameters: Object.entries(Object(parameters)).map(([name, value]) => [cut(name), cut(textOf(value))]),
    undeclared: Array.isArray(extra) ? extra.map((pair) => cut(String(Object(pair)[0]))) : [],
    member: memberOf(waitQueueIdentity({ ...call, ...(typeof group === 'string' ? { group } : {}) })),
    bucket: bucketOf({ providerKey: ownKey }),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function cut(text: string): string {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text
}
