import type { Queue } from 'bullmq'
import type { Api, Catalog } from '../src/catalog/catalog.ts'
import { probeEverySeconds } from '../src/catalog/probe-interval.ts'
import type { Log } from '../src/log.ts'
import type { CallQueues } from '../src/queue/call-queue.ts'
import { PROBE_JOB, PROBE_JOB_OPTIONS, type ProbeJob, probeScheduler } from '../src/queue/probe-job.ts'

export interface ProbeScheduleDeps {
  catalog: Catalog
  queues: Pick<CallQueues, 'of'>
  log: Log
}

/** How the probes of an upstream are scheduled. */
interface Schedule {
  /** Seconds between two probes; 0: no probes. */
  seconds: number
  /** The lane that holds the scheduler. */
  lane: Queue
}

/**
 * Keeps one job scheduler for each enabled upstream. Its id is the same in all processes, so that
 * there is only one.
 */
export class ProbeSchedule {
  readonly #deps: ProbeScheduleDeps
  /** By slug. */
  readonly #known = new Map<string, Schedule>()

  constructor(deps: ProbeScheduleDeps) {
    this.#deps = deps
  }

  /**
   * Updates schedulers after upstreams were enabled, disabled, added or removed, or caps have
   * changed that need other intervals.
   */
  async follow(): Promise<void> {
    const left = [...this.#known].filter(([slug]) => !this.#deps.catalog.has(slug))
    for (const [slug, { lane }] of left) {
      await lane.removeJobScheduler(probeScheduler(slug))
      this.#known.delete(slug)
    }
    const apis = [...this.#deps.catalog.values()]
    await this.#ensure(apis.filter((api) => this.#known.get(api.slug)?.seconds !== intervalOf(api)))
  }

  /**
   * Checks every upstream, because Redis may have lost its data, or another lane may carry the
   * upstream's calls now.
   */
  async repair(): Promise<void> {
    await this.#ensure([...this.#deps.catalog.values()])
  }

  async #ensure(apis: Api[]): Promise<void> {
    const { queues, log } = this.#deps
    const ensured = await Promise.all(
      apis.map(async (api) => {
        const { slug } = api
        const schedule = { seconds: intervalOf(api), lane: queues.of(slug) }
        const before = this.#known.get(slug)
        if (before && before.lane !== schedule.lane) await before.lane.removeJobScheduler(probeScheduler(slug))
        const isChanged = await ensureScheduler(slug, schedule)
        this.#known.set(slug, schedule)
        return isChanged
      }),
    )
    const upstreams = ensured.filter(Boolean).length
    if (upstreams > 0) log.info({ upstreams }, 'probes scheduled')
  }
}

/** Seconds; 0: no probes. */
function intervalOf(api: Api): number {
  return api.enabled ? probeEverySeconds(api) : 0
}

/** @returns whether anything had to be done */
async function ensureScheduler(slug: string, { seconds, lane }: Schedule): Promise<boolean> {
  const id = probeScheduler(slug)
  if (seconds === 0) return await lane.removeJobScheduler(id)
  const every = seconds * 1_000
  const scheduler = await lane.getJobScheduler(id)
  // Each job of a scheduler creates the next job, so a lost job would end the probes.
  const isComplete = scheduler?.every === every && (await lane.getJob(`repeat:${id}:${scheduler.next}`)) !== undefined
  if (isComplete) return false
  const data: ProbeJob = { v: 1, slug }
  await lane.upsertJobScheduler(id, { every }, { name: PROBE_JOB, data, opts: PROBE_JOB_OPTIONS })
  return true
}
