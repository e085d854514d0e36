import type { Queue } from 'bullmq'
import type { Api, Catalog } from '../src/catalog/catalog.ts'
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
  readonly #known = new Map<string, boolean>()

  constructor(deps: ProbeScheduleDeps) {
    this.#deps = deps
  }

  /** Follows what was enabled and disabled since the last time. */
  async follow(): Promise<void> {
    await this.#ensure(
      [...this.#deps.catalog.values()].filter(({ slug, enabled }) => this.#known.get(slug) !== enabled),
    )
  }

  /** Looks at every upstream: Redis may have lost its data, or somebody emptied a queue. */
  async repair(): Promise<void> {
    await this.#ensure([...this.#deps.catalog.values()])
  }

  async #ensure(apis: Api[]): Promise<void> {
    const { queues, log } = this.#deps
    const ensured = await Promise.all(
      apis.map(async (api) => {
        const isChanged = await ensureScheduler(queues.of(api.slug), api)
        this.#known.set(api.slug, api.enabled)
        return isChanged
      }),
    )
    const upstreams = ensured.filter(Boolean).length
    if (upstreams > 0) log.info({ upstreams }, 'probes scheduled')
  }
}

/** @returns whether anything had to be done */
async function ensureScheduler(queue: Queue, { slug, enabled, upstream }: Api): Promise<boolean> {
  if (!enabled) return await queue.removeJobScheduler(PROBE_SCHEDULER)
  const every = upstream.probe.everySeconds * 1_000
  const scheduler = await queue.getJobScheduler(PROBE_SCHEDULER)
  // Each job of the scheduler makes the next one, so that a lost job ends the probes.
  const isComplete =
    scheduler?.every === every && (await queue.getJob(`repeat:${PROBE_SCHEDULER}:${scheduler.next}`)) !== undefined
  if (isComplete) return false
  const data: ProbeJob = { v: 1, slug }
  await queue.upsertJobScheduler(PROBE_SCHEDULER, { every }, { name: PROBE_JOB, data, opts: PROBE_JOB_OPTIONS })
  return true
}
