import { SingleFlight } from '../async/single-flight.ts'
import { within } from '../async/within.ts'
import type { Db } from '../db/database.ts'
import { isSchemaUpToDate, listMigrations } from '../db/schema-version.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { missingRights } from '../redis/missing-rights.ts'
import { problemOf } from '../redis/server-info.ts'

/**
 * Longest that a store may take to answer, milliseconds. A worker's connection would wait for Redis
 * without end.
 */
const ANSWER_MS_MAX = 2_000

/** Whether a process can serve, and what is in the way. */
export interface ReadinessReport {
  status: 'ready' | 'draining' | 'unavailable'
  postgres: boolean
  redis: boolean
  /** What an operator has to change; empty for a store that does not answer. */
  problems: string[]
}

/**
 * Finds out whether a process can serve: both stores answer, are of use, and the process is not
 * ending.
 */
export class Readiness {
  readonly #stores: { db: Db; redis: RedisConnection }
  /**
   * What each store is asked, once at a time: a Redis that is silent must not gather a command for
   * each probe.
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
      // A worker's connection would keep the command until Redis is back.
      if (store === 'redis' && this.#stores.redis.status !== 'ready') return { isUsable: false, problems: [] }
      const problems = await within(ANSWER_MS_MAX, this.#questions.run(store, findProblems))
      // It does not answer; why is in the connection's own log lines.
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
      : ['the schema of the database is older than this version: run the migrations']
  }

  async #findRedisProblems(): Promise<string[]> {
    const { redis } = this.#stores
    // All of it. If a Redis is too old, it accepts no two sections at once, and the check could not
    // say so.
    const problem = problemOf(await redis.info(), redis)
    return [...(problem === undefined ? [] : [problem]), ...missingRights(redis)]
  }
}

interface StoreReport {
  isUsable: boolean
  problems: string[]
}
