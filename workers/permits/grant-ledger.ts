import { randomUUID } from 'node:crypto'
import { COLD_START_HOLD_MS } from '../../src/caps/timing.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import { addCapGrants, deleteOldCapGrants } from '../../src/db/cap-grants.ts'
import type { Db } from '../../src/db/database.ts'
import type { Log } from '../../src/log.ts'
import type { CapBucket } from '../../src/queue/wait-queue-entry.ts'
import type { RedisClock } from '../../src/redis/clock.ts'

const FLUSH_EVERY_MS = 1_000
const MINUTE_MS = 60_000
const CLEAN_EVERY_MS = 3_600_000

interface GrantCount {
  slug: string
  bucket: CapBucket
  granted: number
}

/**
 * Counts the grants under long windows in Postgres, so that these windows hold if Redis loses its
 * data.
 */
export class GrantLedger {
  readonly #db: Db
  readonly #clock: RedisClock
  readonly #log: Log
  readonly #worker = randomUUID()
  #counts = new Map<string, GrantCount & { minute: Date }>()
  #timers: NodeJS.Timeout[] = []

  constructor(db: Db, clock: RedisClock, log: Log) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  open(): void {
    const clean = (): void => {
      deleteOldCapGrants(this.#db).catch((error) => this.#log.debug({ err: error }, 'failed to delete old grants'))
    }
    this.#timers = [setInterval(() => void this.#flush(), FLUSH_EVERY_MS), setInterval(clean, CLEAN_EVERY_MS)]
  }

  add({ slug, bucket, caps, granted }: GrantCount & { caps: Caps }): void {
    if (granted === 0) return
    if (!caps.rates.some(({ seconds }) => seconds * 1_000 > COLD_START_HOLD_MS)) return
    const minute = new Date(Math.floor(this.#clock.now() / MINUTE_MS) * MINUTE_MS)
    this.#count({ slug, bucket, minute, granted })
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#flush()
  }

  async #flush(): Promise<void> {
    if (this.#counts.size === 0) return
    const counts = this.#counts
    this.#counts = new Map()
    try {
      await addCapGrants(
        this.#db,
        [...counts.values()].map((count) => ({ ...count, worker: this.#worker })),
      )
    } catch (error) {
      this.#log.warn({ err: error }, 'failed to write grants to Postgres; they are kept for the next flush')
      for (const count of counts.values()) this.#count(count)
    }
  }

  #count(count: GrantCount & { minute: Date }): void {
    const key = `${count.slug} ${count.bucket} ${count.minute.getTime()}`
    const known = this.#counts.get(key)
    if (known) known.granted += count.granted
    else this.#counts.set(key, count)
  }
}
