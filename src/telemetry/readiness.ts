import type { Db } from '../db/database.ts'
import { isSchemaUpToDate, listMigrations } from '../db/schema-version.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { problemOf } from '../redis/server-info.ts'

/** Whether a process can serve, and what is in the way. */
export interface ReadinessReport {
  status: 'ready' | 'draining' | 'unavailable'
  postgres: boolean
  redis: boolean
  /** What an operator has to change; empty for a store that does not answer. */
  problems: string[]
}

/** Finds out whether a process can serve: both stores answer, are of use, and the process is not ending. */
export class Readiness {
  readonly #stores: { db: Db; redis: RedisConnection }
  #migrations: Promise<string[]> | undefined
  #isDraining = false

  constructor(stores: { db: Db; redis: RedisConnection }) {
    this.#stores = stores
  }

  drain(): void {
    this.#isDraining = true
  }

  async check(): Promise<ReadinessReport> {
    const [postgres, redis] = await Promise.all([this.#checkPostgres(), this.#checkRedis()])
    const problems = [postgres.problem, redis.problem].filter((problem) => problem !== undefined)
    const isReady = postgres.isUsable && redis.isUsable
    const status = this.#isDraining ? 'draining' : isReady ? 'ready' : 'unavailable'
    return { status, postgres: postgres.isUsable, redis: redis.isUsable, problems }
  }

  async #checkPostgres(): Promise<StoreReport> {
    this.#migrations ??= listMigrations()
    const migrations = await this.#migrations
    return await report(async () =>
      (await isSchemaUpToDate(this.#stores.db, migrations))
        ? undefined
        : 'the schema of the database is older than this version: run the migrations',
    )
  }

  async #checkRedis(): Promise<StoreReport> {
    const { redis } = this.#stores
    return await report(async () => problemOf(await redis.info('server'), redis))
  }
}

interface StoreReport {
  isUsable: boolean
  problem?: string
}

async function report(findProblem: () => Promise<string | undefined>): Promise<StoreReport> {
  try {
    const problem = await findProblem()
    return problem === undefined ? { isUsable: true } : { isUsable: false, problem }
  } catch {
    // It does not answer; why is in the connection's own log lines.
    return { isUsable: false }
  }
}
