import { SingleFlight } from '../async/single-flight.ts'
import { within } from '../async/within.ts'
import type { Db } from '../db/database.ts'
import { isSchemaUpToDate, listMigrations } from '../db/schema-version.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { missingRights } from '../redis/missing-rights.ts'
import { problemOf } from '../redis/server-info.ts'

/**
 * Longest wait for the answer of a store, milliseconds. Without it, a worker's connection would
 * wait for Redis without end.
 */
const ANSWER_MS_MAX = 2_000

/** Whether a process can serve, and why not. */
export interface ReadinessReport {
  status: 'ready' | 'draining' | 'unavailable'
  postgres: boolean
  redis: boolean
  /** What an operator has to change; empty for a store that does not answer. */
  problems: string[]
}

/**
 * Checks whether a process can serve: both stores answer and are usable, and the process is not
 * closing.
 */
export class Readiness {
  readonly #stores: { db: Db; redis: RedisConnection }
  /**
   * Each check of a store runs only once at a time, so that commands do not pile up while Redis is
   * silent.
   */
  readonly #questions = new SingleFlight<string[]>()
  #migrations: Promise<string[]> | undefined
  #isDraining = false

  constructor(stores: { db: Db; redis: RedisConnection }) {
    this.#stores = stores
  }

  drain(): void {
    this.#isDraining = true
  }

  async check(): Promise<ReadinessReport> {
    const [postgres, redis] = await Promise.all([
      this.#ask('postgres', () => this.#findPostgresProblems()),
      this.#ask('redis', () => this.#findRedisProblems()),
    ])
    const isReady = postgres.isUsable && redis.isUsable
    const status = this.#isDraining ? 'draining' : isReady ? 'ready' : 'unavailable'
    const problems = [...postgres.problems, ...redis.problems]
    return { status, postgres: postgres.isUsable, redis: redis.isUsable, problems }
  }

  async #ask(store: string, findProblems: () => Promise<string[]>): Promise<StoreReport> {
    try {
      // A worker's connection would queue the command until Redis is back.
      if (store === 'redis' && this.#stores.redis.status !== 'ready') return { isUsable: false, problems: [] }
      const problems = await within(ANSWER_MS_MAX, this.#questions.run(store, findProblems))
      // The store does not answer. Its connection logs the reason.
      if (problems === 'late') return { isUsable: false, problems: [] }
      return { isUsable: problems.length === 0, problems }
    } catch {
      return { isUsable: false, problems: store === 'redis' ? missingRights(this.#stores.redis) : [] }
    }
  }

  async #findPostgresProblems(): Promise<string[]> {
    this.#migrations ??= listMigrations()
    return (await isSchemaUpToDate(this.#stores.db, await this.#migrations))
      ? []
      : ['the schema of the database is older than this version of the gateway: run the migrations']
  }

  async #findRedisProblems(): Promise<string[]> {
    const { redis } = this.#stores
    // All sections are read, because an old Redis does not accept two section names at once, and
    // would fail before the check could call it too old.
    const problem = problemOf(await redis.info(), redis)
    return [...(problem === undefined ? [] : [problem]), ...missingRights(redis)]
  }
}

interface StoreReport {
  isUsable: boolean
  problems: string[]
}
