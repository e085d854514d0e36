import { setTimeout as delay } from 'node:timers/promises'
import { type Job, type Processor, Worker, type WorkerOptions } from 'bullmq'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { loadScript } from '../../src/redis/script.ts'

const clearMarker = loadScript(new URL('./lua/clear-marker.lua', import.meta.url))

/** BullMQ's scores of delayed jobs have this many units in a millisecond. */
const SCORE_PARTS = 0x1000

/** Most jobs that are taken in one round trip. */
const TAKEN_TOGETHER_MAX = 16

/** Pause after a failure of Redis, milliseconds. */
const RETRY_MS = 250

interface QueueWorkerOptions extends Omit<WorkerOptions, 'connection' | 'autorun'> {
  connection: RedisConnection
  concurrency: number
}

/**
 * A BullMQ worker with its own fetch loop. It starts a job as soon as Redis returns it, then
 * removes BullMQ's wake-up marker if the queue is empty. (BullMQ's loop polls twice more for a job
 * that came alone.) A worker with `concurrency` jobs leaves the marker to others.
 */
export class QueueWorker extends Worker {
  readonly #redis: RedisConnection
  readonly #markerKeys: string[]
  readonly #runs = new Set<Promise<void>>()
  #tokens = 0
  /** When the next delayed job is due, Unix milliseconds; 0 if none is known. */
  #dueAt = 0
  #onRoom: () => void = () => undefined

  constructor(name: string, processor: Processor, options: QueueWorkerOptions) {
    super(name, processor, { ...options, autorun: false })
    this.#redis = options.connection
    const { marker = '', wait = '', prioritized = '', delayed = '' } = this.keys
    this.#markerKeys = [marker, wait, prioritized, delayed]
  }

  /**
   * Takes and runs jobs until `close()` or `pause()`. Never throws: failures of Redis are `error`
   * events.
   */
  override async run(): Promise<void> {
    if (this.running || this.closing || this.paused) return
    this.running = true
    this.lockManager.start()
    await this.startStalledCheckTimer()
    // `close()` ends the blocking command and waits for this promise.
    this.mainLoopRunning = this.#takeJobs()
    await this.mainLoopRunning
    this.running = false
  }

  async #takeJobs(): Promise<void> {
    while (this.#isOpen) {
      try {
        await this.#takeWaiting()
        if (this.#isFull) await this.#untilRoom()
        else if (this.#isOpen) await this.#untilMarker()
      } catch (error) {
        if (!this.#isOpen) break
        this.emit('error', error as Error)
        await this.backend.reconnectBlocking().catch(() => undefined)
        await delay(RETRY_MS)
      }
    }
    await Promise.all(this.#runs)
  }

  get #isOpen(): boolean {
    return !this.closing && !this.paused
  }

  get #isFull(): boolean {
    return this.#runs.size >= this.concurrency
  }

  /** @throws what Redis throws */
  async #takeWaiting(): Promise<void> {
    let waiting = 1
    while (this.#isOpen && !this.#isFull) {
      const count = Math.min(waiting, this.concurrency - this.#runs.size, TAKEN_TOGETHER_MAX)
      const jobs = await Promise.all(Array.from({ length: count }, () => this.#startNext()))
      if (jobs.includes(undefined)) return
      waiting -= count
      if (waiting > 0) continue
      // Below 0: minus the number of jobs that wait. Otherwise when the next delayed job is due; 0:
      // no job is delayed.
      const nextDue = Number(await clearMarker.run(this.#redis, this.#markerKeys, []))
      if (nextDue >= 0) {
        this.#dueAt = nextDue / SCORE_PARTS
        return
      }
      waiting = -nextDue
    }
  }

  async #startNext(): Promise<Job | undefined> {
    this.#tokens += 1
    const token = `${this.id}:${this.#tokens}`
    const [data, id, , dueAt] = await this.backend.moveToActive(token, this.opts.name)
    const job = await this.nextJobFromJobData(data, id, token)
    if (!job) {
      this.#dueAt = dueAt ?? 0
      return undefined
    }
    const run = this.#run(job, token)
      .catch((error) => {
        this.emit('error', error)
      })
      .finally(() => {
        this.#runs.delete(run)
        this.#onRoom()
      })
    this.#runs.add(run)
    return job
  }

  /** If the worker is full, it takes the next job in the step that ends the previous job. */
  async #run(first: Job, token: string): Promise<void> {
    let job: Job | undefined = first
    while (job) job = (await this.processJob(job, token, () => this.#isFull)) ?? undefined
  }

  async #untilRoom(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onRoom = resolve
    await promise
  }

  /** @throws what Redis throws */
  async #untilMarker(): Promise<void> {
    const seconds = this.getBlockTimeout(this.#dueAt)
    const marker = seconds > 0 ? await this.backend.waitForJob(seconds) : null
    // This worker takes no more jobs, so it puts the marker back for another worker.
    if (marker && !this.#isOpen) await this.#redis.zadd(this.keys.marker ?? '', marker.score, marker.member)
  }
}
