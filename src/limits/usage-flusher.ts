import { randomUUID } from 'node:crypto'
import type { Db } from '../db/database.ts'
import { type UsageCount, writeUsageBatch } from '../db/usage.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { decodeEntry } from './usage-ledger.ts'

const MOVE_EVERY_MS = 1_000

/**
 * Lifetime of the lease. It is shorter than the flush interval, so that a dead node delays no
 * flush.
 */
const LEASE_MS = 900

/**
 * How long a failure is remembered after it was last seen, seconds; long enough for several tries.
 */
const FAILING_SECONDS = 8

const sealBatch = loadScript(new URL('./lua/seal-usage-batch.lua', import.meta.url))

/**
 * Moves usage from Redis to Postgres each second, in batches whose ids Postgres remembers. If a
 * node dies, the next node writes its batch, and no batch counts twice. A lease lets only one node
 * work at a time; two would do no harm.
 */
export class UsageFlusher {
  readonly #deps: { db: Db; redis: RedisConnection; log: Log }
  #timer: NodeJS.Timeout | undefined
  #current: Promise<void> = Promise.resolve()
  #isMoving = false
  #isFailing = false

  constructor(deps: { db: Db; redis: RedisConnection; log: Log }) {
    this.#deps = deps
  }

  open(): void {
    this.#timer = setInterval(() => {
      if (!this.#isMoving) this.#current = this.#move()
    }, MOVE_EVERY_MS)
  }

  /** Pending counts stay in Redis for another node. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#current
  }

  async #move(): Promise<void> {
    const { redis, log } = this.#deps
    this.#isMoving = true
    try {
      if ((await redis.set(keys.usageLease, '1', 'PX', LEASE_MS, 'NX')) === null) return
      // Batches of earlier runs come first. While Postgres is away, no new batch is made, so the
      // pending counts stay in one hash.
      for (const id of await redis.smembers(keys.usageBatches)) await this.#write(id)
      const id = randomUUID()
      if ((await sealBatch.run(redis, [keys.usagePending, keys.usageBatch(id), keys.usageBatches], [id])) === 1)
        await this.#write(id)
      await this.#noteSuccess()
    } catch (error) {
      const level = this.#isFailing ? 'debug' : 'warn'
      log[level]({ err: error }, 'failed to write usage to Postgres; it stays in Redis')
      await this.#noteFailure()
    } finally {
      this.#isMoving = false
    }
  }

  async #noteSuccess(): Promise<void> {
    const { redis, log } = this.#deps
    if (!this.#isFailing) return
    await redis.del(keys.usageFailing)
    this.#isFailing = false
    log.info('usage is written to Postgres again')
  }

  /** Records the failure for operators, because calls continue and do not show it. */
  async #noteFailure(): Promise<void> {
    const { redis, log } = this.#deps
    this.#isFailing = true
    try {
      const [seconds] = await redis.time()
      await redis.set(keys.usageFailing, Number(seconds) * 1_000, 'EX', FAILING_SECONDS, 'NX')
      await redis.expire(keys.usageFailing, FAILING_SECONDS)
    } catch (error) {
      log.debug({ err: error }, 'failed to note that usage is not written')
    }
  }

  async #write(id: string): Promise<void> {
    const { db, redis, log } = this.#deps
    const counts: UsageCount[] = []
    for (const [field, value] of Object.entries(await redis.hgetall(keys.usageBatch(id)))) {
      const entry = decodeEntry(field)
      if (entry) counts.push({ ...entry, calls: Number(value) })
      else log.error({ field }, 'failed to read a usage entry')
    }
    if (counts.length > 0) await writeUsageBatch(db, id, counts)
    await redis.del(keys.usageBatch(id))
    await redis.srem(keys.usageBatches, id)
  }
}
