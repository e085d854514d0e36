import { type AnswerableCall, parseAnswerable } from '../queue/call-job.ts'
import { CALL_JOB } from '../queue/call-queue.ts'
import { PROBE_JOB, probeTitle } from '../queue/probe-job.ts'
import { bucketOf, memberOf } from '../queue/wait-queue-entry.ts'
import { type LaneJob, readLaneJobs } from './lane-jobs.ts'
import type { RowDeps } from './upstream-rows.ts'

/** Most jobs that are shown as ended by a defect. */
const FAILED_MAX = 20

/** Most waiting calls whose place in the queue is read. */
const WAITING_MAX = 1_000

/** Longest text of a job that is shown, characters. */
const TEXT_MAX = 200

/** The queue of one API at one time. Times are milliseconds. */
export interface QueueContents {
  /**
   * The calls of the jobs that were read: first the calls at workers, then the others in the order
   * in which they will be served.
   */
  calls: QueuedCall[]
  /** Whether there are more jobs than were read. */
  isCut: boolean
  /** Probes and key validations: running or waiting, and when the next scheduled probes are due. */
  others: { name: string; title: string; isRunning: boolean; dueInMs: number }[]
  /**
   * Jobs that ended by a defect of the gateway, the newest first. A call that fails normally is
   * answered and not listed.
   */
  failed: { id: string; name: string; at: number; reason: string }[]
}

/**
 * The state of a call. Workers take jobs before they have permits. Calls of a paused API are held.
 */
export const CALL_STATES = ['under-way', 'waiting-for-cap', 'held', 'waiting-for-worker'] as const

export type CallState = (typeof CALL_STATES)[number]

export interface QueuedCall {
  id: string
  accountId: string
  /** Null if Postgres does not know the account, or does not answer. */
  email: string | null
  endpoint: string
  mode: 'live' | 'test'
  isAsync: boolean
  /** Whether the call uses a key of its caller, which has its own cap. */
  hasOwnKey: boolean
  state: CallState
  /** Calls that get their permits before this call; null if it does not wait for a permit. */
  ahead: number | null
  waitedMs: number
  /** Time until its deadline; negative if it has passed. */
  leftMs: number
  /** Declared parameters; long values are cut. */
  parameters: [name: string, value: string][]
  /** Names of undeclared parameters. Their values are not shown, because they may be anything. */
  undeclared: string[]
}

/**
 * Reads the jobs of an API from the lanes, and the wait queues of its caps.
 *
 * @param isHeld whether an operator paused the API so that its calls wait
 * @param isServed whether a living worker serves the API, as far as that is known
 * @throws what Redis throws
 */
export async function readQueueContents(
  { queues, caps, clock }: Pick<RowDeps, 'queues' | 'caps' | 'clock'>,
  { slug, isHeld, isServed }: { slug: string; isHeld: boolean; isServed: boolean },
): Promise<QueueContents> {
  const at = clock.now()
  const lanes = await readLaneJobs(queues, [slug])
  const jobs = lanes.of.get(slug) ?? []
  const calls = jobs.flatMap((job) => callsOf(job, at))
  const buckets = [...new Set(calls.map(({ bucket }) => bucket))]
  const members = await Promise.all(buckets.map((bucket) => caps.of({ slug }, bucket).queuedMembers(WAITING_MAX)))
  const places = new Map(members.flatMap((inOrder) => inOrder.map((member, place) => [member, place] as const)))
  return {
    calls: calls
      .map(({ member, bucket: _, ...call }) => {
        const ahead = places.get(member)
        if (ahead === undefined) return { ...call, email: null, ahead: null }
        const state: CallState = isHeld ? 'held' : isServed ? 'waiting-for-cap' : 'waiting-for-worker'
        return { ...call, email: null, ahead, state }
      })
      .sort((a, b) => orderOf(a) - orderOf(b) || b.waitedMs - a.waitedMs),
    isCut: lanes.isCut,
    others: jobs
      .filter(({ name, state }) => name !== CALL_JOB && state !== 'failed')
      .map(({ id, name, state, dueAt }) => ({
        name,
        title: name === PROBE_JOB ? probeTitle(id) : 'check of a key',
        isRunning: state === 'active',
        dueInMs: state === 'active' ? 0 : Math.max(0, dueAt - at),
      }))
      .sort((a, b) => Number(b.isRunning) - Number(a.isRunning) || a.dueInMs - b.dueInMs),
    failed: jobs
      .filter(({ state }) => state === 'failed')
      .slice(0, FAILED_MAX)
      .map(({ id, name, finishedAt, failedReason }) => ({ id, name, at: finishedAt, reason: cut(failedReason) })),
  }
}

/** Sorts running calls first, then calls that wait for permits in their order, then all others. */
function orderOf({ state, ahead }: QueuedCall): number {
  if (ahead !== null) return ahead
  return state === 'under-way' ? -1 : Number.MAX_SAFE_INTEGER
}

type FoundCall = Omit<QueuedCall, 'ahead' | 'email'> & { member: string; bucket: string }

function callsOf({ calls, state }: LaneJob, at: number): FoundCall[] {
  if (state === 'failed') return []
  const found = state === 'active' ? 'under-way' : 'waiting-for-worker'
  // Calls of a later version are shown too, with the members that this version knows.
  return calls.flatMap((stored) => parseAnswerable(stored).map((call) => foundCall(call, stored, { state: found, at })))
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
    member: memberOf({ ...call, group: typeof group === 'string' ? group : undefined }),
    bucket: bucketOf({ providerKey: ownKey }),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function cut(text: string): string {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text
}
