import type { Job, JobType, Queue } from 'bullmq'
import { storedCalls } from '../queue/call-job.ts'
import { CALL_JOB, type CallQueues } from '../queue/call-queue.ts'

/**
 * Most jobs of one state that are read from each lane. A lane may hold thousands of calls, and
 * reading all would only make a page slow.
 */
const JOBS_MAX = 400

/** The job states that are read. */
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const

export type LaneJobState = (typeof STATES)[number]

/** A job, or the part of a shared job that belongs to one API. */
export interface LaneJob {
  id: string
  name: string
  state: LaneJobState
  /** The stored calls; none for a probe or a validation of a key. */
  calls: unknown[]
  data: unknown
  /** When the job was added, is due, and ended. Milliseconds since the epoch. */
  addedAt: number
  dueAt: number
  finishedAt: number
  failedReason: string
  /**
   * The number of jobs of its lane and state for which this job stands. More than 1 if not all jobs
   * were read.
   */
  weight: number
}

/** The jobs of the lanes, by API. */
export interface LanesJobs {
  /** Jobs by slug. */
  of: Map<string, LaneJob[]>
  /** Whether there are more jobs than were read. */
  isCut: boolean
}

/**
 * Reads the lanes that carry the calls of these APIs, the oldest jobs first.
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

/**
 * Reads the jobs of one state, failed jobs newest first. Jobs that end during the reading are left
 * out.
 */
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

/** Splits a job into the calls for each API. */
function partsOf(job: LaneJob): (LaneJob & { slug: string })[] {
  if (job.name !== CALL_JOB) return [{ ...job, slug: slugOf(job.data) }]
  return [...Map.groupBy(job.calls, slugOf)].map(([slug, calls]) => ({ ...job, calls, slug }))
}

function slugOf(data: unknown): string {
  return String(Object(data).slug)
}
