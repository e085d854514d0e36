import type { Job, JobType, Queue } from 'bullmq'
import { storedCalls } from '../queue/call-job.ts'
import { CALL_JOB, type CallQueues } from '../queue/call-queue.ts'

/**
 * Jobs of a state read of each lane at most. A lane may hold thousands of calls; more of them only
 * make a page slow.
 */
const JOBS_MAX = 400

/** The states of a job that are read. */
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const

export type LaneJobState = (typeof STATES)[number]

/** A job, or the calls of a shared job that are for one API. */
export interface LaneJob {
  id: string
  name: string
  state: LaneJobState
  /** The calls as they are stored; none for a probe or the validation of a key. */
  calls: unknown[]
  data: unknown
  /** When it was added, is due and ended. Milliseconds since the epoch. */
  addedAt: number
  dueAt: number
  finishedAt: number
  failedReason: string
  /**
   * How many jobs of its lane and state it stands for: more than one if there are more than were
   * read.
   */
  weight: number
}

/** What the lanes hold for the APIs. */
export interface LanesJobs {
  /** By slug. */
  of: Map<string, LaneJob[]>
  /** Whether there are more jobs than were read. */
  isCut: boolean
}

/**
 * Reads the lanes that carry the calls of these APIs, oldest jobs first.
 *
 * @throws what Redis throws
 */
export async function readLaneJobs(queues: Pick<CallQueues, 'queuesOf'>, slugs: Iterable<string>): Promise<LanesJobs> {
  const lanes = await Promise.all(queues.queuesOf(slugs).map(readLane))
  const jobs = lanes.flatMap((lane) => lane.jobs)
  return { of: Map.groupBy(jobs.flatMap(partsOf), ({ slug }) => slug), isCut: lanes.some(({ isCut }) => isCut) }
}

async function readLane(lane: Queue): Promise<{ jobs: LaneJob[]; isCut: boolean }> {
  const counts = await lane.getJobCounts(...STATES)
  const read = await Promise.all(
    STATES.map(async (state) => {
      const count = counts[state] ?? 0
      const jobs = count === 0 ? [] : await readState(lane, state)
      const weight = jobs.length < JOBS_MAX ? 1 : count / jobs.length
      return jobs.map((job) => laneJob(job, { state, weight }))
    }),
  )
  return { jobs: read.flat(), isCut: read.some((jobs) => jobs.length === JOBS_MAX) }
}

/** Failed jobs come newest first. A job that ended while they were read is left out. */
async function readState(lane: Queue, state: JobType): Promise<Job[]> {
  const jobs: (Job | undefined)[] = await lane.getJobs(state, 0, JOBS_MAX - 1, state !== 'failed')
  return jobs.filter((job) => job !== undefined)
}

function laneJob(job: Job, { state, weight }: Pick<LaneJob, 'state' | 'weight'>): LaneJob {
  const { id = '', name, data, timestamp, delay, finishedOn = 0, failedReason = '' } = job
  const calls = name === CALL_JOB ? storedCalls(data) : []
  const times = { addedAt: timestamp, dueAt: timestamp + delay, finishedAt: finishedOn }
  return { id, name, state, calls, data, ...times, failedReason, weight }
}

/** A job with its calls by API. */
function partsOf(job: LaneJob): (LaneJob & { slug: string })[] {
  if (job.name !== CALL_JOB) return [{ ...job, slug: slugOf(job.data) }]
  return [...Map.groupBy(job.calls, slugOf)].map(([slug, calls]) => ({ ...job, calls, slug }))
}

function slugOf(data: unknown): string {
  return String(Object(data).slug)
}
