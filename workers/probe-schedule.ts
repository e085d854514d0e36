import type { Queue } from 'bullmq'
import type { Api, Catalog } from '../src/catalog/catalog.ts'
import { probeEverySeconds } from '../src/catalog/probe-interval.ts'
import type { Log } from '../src/log.ts'
import type { CallQueues } from '../src/queue/call-queue.ts'
import { PROBE_JOB, PROBE_JOB_OPTIONS, PROBE_SCHEDULER, type ProbeJob } from '../src/queue/probe-job.ts'

export interface ProbeScheduleDeps {
  catalog: Catalog
  queues: Pick<CallQueues, 'of'>
  log: Log
}

/** Keeps one job scheduler per enabled upstream; its id keeps it one, however many processes set it. */
export class ProbeSchedule {
  readonly #deps: ProbeScheduleDeps
  /** By slug, seconds; 0: no probes. */
  readonly #known = new Map<string, number>()

  constructor(deps: ProbeScheduleDeps) {
    this.#deps = deps
  }

  /** Follows what was enabled and disabled since the last time, and caps that want other intervals. */
  async follow(): Promise<void> {
    await this.#ensure([...this.#deps.catalog.values()].filter((api) => this.#known.get(api.slug) !== intervalOf(api)))
  }

  /** Looks at every upstream: Redis may have lost its data, or somebody emptied a queue. */
  async repair(): Promise<void> {
    await this.#ensure([...this.#deps.catalog.values()])
  }

  async #ensure(apis: Api[]): Promise<void> {
    const { queues, log } = this.#deps
    const ensured = await Promise.all(
      apis.map(async (api) => {
        const seconds = intervalOf(api)
        const isChanged = await ensureScheduler(queues.of(api.slug), { slug: api.slug, seconds })
        this.#known.set(api.slug, seconds)
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
async function ensureScheduler(queue: Queue, { slug, seconds }: { slug: string; seconds: number }): Promise<boolean> {
  if (seconds === 0) return await queue.removeJobScheduler(PROBE_SCHEDULER)
  const every = seconds * 1_000
  const scheduler = await queue.getJobScheduler(PROBE_SCHEDULER)
  // Each job of the scheduler makes the next one, so that a lost job ends the probes.
  const isComplete =
    scheduler?.every === every && (await queue.getJob(`repeat:${PROBE_SCHEDULER}:${scheduler.next}`)) !== undefined
  if (isComplete) return false
  const data: ProbeJob = { v: 1, slug }
  await queue.upsertJobScheduler(PROBE_SCHEDULER, { every }, { name: PROBE_JOB, data, opts: PROBE_JOB_OPTIONS })
  return true
}
