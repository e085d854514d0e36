import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import pg from 'pg'
import { PatientTimer } from '../async/patient-timer.ts'
import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { type Place, Places, PooledClient, startLimit, type WaitLimit } from './pool-waits.ts'
import { PostgresAccess } from './postgres-access.ts'
import { errorForCaller, sqlState, unavailable } from './postgres-errors.ts'

/** Longest run time of a statement on the server, milliseconds. */
const STATEMENT_MS_MAX = 1_500

/** Longest idle time of a transaction on the server, milliseconds. */
const IDLE_IN_TRANSACTION_MS_MAX = 5_000

/**
 * SQLSTATE of a Postgres that has no free connection, because of the limit of the server, the
 * database or the role.
 */
const TOO_MANY_CONNECTIONS = '53300'

/**
 * How long a pool uses only the connections that it has after Postgres refused another connection,
 * milliseconds.
 */
const CROWDED_MS = 5_000

/**
 * Longest time from the request for a connection to the answer of its first statement, and longest
 * time of every further statement, milliseconds. The server's own limit is shorter, so this limit
 * only applies to a server that does not answer at all.
 */
const ANSWER_MS_MAX = 1_800

export interface PoolOptions {
  url: string
  log: Log
  connectionsMax: number
  /** Connections that stay open while they are idle. */
  connectionsMin: number
}

/**
 * A pool of Postgres connections that answers in time. If no answer can be had, it throws
 * DEPENDENCY_UNAVAILABLE: there is no connection, the connection broke, or the server is silent,
 * overloaded or read-only. Errors of the statement itself are thrown as pg throws them. It also
 * works through PgBouncer in transaction mode.
 */
export class BoundedPool implements PostgresPool {
  readonly options = {}
  readonly #options: PoolOptions
  readonly #access: PostgresAccess
  readonly #places: Places
  #pool: pg.Pool
  #loggedReason = ''
  /**
   * Open connections by pool. The pool's own count includes connections that are still being
   * opened.
   */
  readonly #connected = new WeakMap<pg.Pool, Set<pg.PoolClient>>()

  constructor(options: PoolOptions) {
    this.#options = options
    this.#access = new PostgresAccess(options.url, {
      statementMs: STATEMENT_MS_MAX,
      idleInTransactionMs: IDLE_IN_TRANSACTION_MS_MAX,
    })
    this.#places = new Places(options.connectionsMax)
    this.#pool = this.#openPool()
  }

  /** @throws GatewayError DEPENDENCY_UNAVAILABLE */
  async connect(): Promise<PostgresPoolClient> {
    const limit = startLimit()
    const place = this.#places.take()
    try {
      await Promise.race([place.granted, limit.late])
    } catch (cause) {
      place.leave()
      this.#logFailure(cause)
      throw unavailable(cause)
    }
    const client = await this.#checkOutAt(place, limit)
    limit.end()
    return new BoundedClient(client, this.#access, { place, firstAnswerMs: ANSWER_MS_MAX - limit.countedMs })
  }

  /**
   * Checks a connection out. If the limit ends the wait, the pool continues to open the connection,
   * and the place stays taken until the connection is open or has failed.
   */
  async #checkOutAt(place: Place, limit: WaitLimit): Promise<pg.PoolClient> {
    const checkedOut = this.#checkOut(limit)
    try {
      return await Promise.race([checkedOut, limit.late])
    } catch (cause) {
      limit.end()
      const leave = (): void => place.leave()
      checkedOut.then((client) => client.release()).then(leave, leave)
      if (cause instanceof GatewayError) throw cause
      this.#logFailure(cause)
      throw unavailable(cause)
    }
  }

  async end(): Promise<void> {
    await this.#pool.end()
  }

  #openPool(): pg.Pool {
    const pool = new pg.Pool({
      ...this.#access.options,
      max: this.#options.connectionsMax,
      min: this.#options.connectionsMin,
      Client: PooledClient,
    })
    // The pool listens for errors of idle connections only. A connection in use needs a listener of
    // its own, because an error without a listener ends the process.
    const connected = new Set<pg.PoolClient>()
    this.#connected.set(pool, connected)
    pool.on('remove', (client) => void connected.delete(client))
    pool.on('connect', (client) => {
      connected.add(client)
      client.on('error', (error) => this.#options.log.warn({ err: error }, 'postgres connection lost'))
    })
    pool.on('error', () => undefined)
    return pool
  }

  async #checkOut(limit: WaitLimit): Promise<pg.PoolClient> {
    const pool = this.#pool
    try {
      const client = await pool.connect()
      this.#loggedReason = ''
      return client
    } catch (cause) {
      // Another request has already replaced the pool that used the refused way to connect. That
      // pool has no connections, and it is not closed, because requests that wait in it arrive here
      // too.
      if (pool !== this.#pool) return await this.#checkOut(limit)
      if (!limit.isOver && this.#mayWaitInPool(pool, cause)) return await this.#checkOut(limit)
      if (this.#access.learn(cause)) {
        this.#options.log.info({ reason: String(cause) }, 'connecting to postgres in another way')
        this.#pool = this.#openPool()
        return await this.#checkOut(limit)
      }
      this.#logFailure(cause)
      throw unavailable(cause)
    }
  }

  /**
   * If Postgres has no free connection, requests wait for a connection of the pool, as in a full
   * pool. Fails closed if the pool has no connection, because then none can become free.
   */
  #mayWaitInPool(pool: pg.Pool, cause: unknown): boolean {
    const connected = this.#connected.get(pool)?.size ?? 0
    if (sqlState(cause) !== TOO_MANY_CONNECTIONS || connected === 0) return false
    this.#logFailure(cause)
    if (pool.options.max === this.#options.connectionsMax) {
      setTimeout(() => {
        pool.options.max = this.#options.connectionsMax
      }, CROWDED_MS).unref()
    }
    pool.options.max = connected
    return true
  }

  /** Logs a failure once for each reason, because every request fails during an outage. */
  #logFailure(cause: unknown): void {
    const reason = sqlState(cause) ?? (cause instanceof Error ? cause.message : '')
    if (reason === this.#loggedReason) return
    this.#loggedReason = reason
    const { host, pathname } = new URL(this.#options.url)
    this.#options.log.warn({ err: cause, host, database: pathname.slice(1) }, 'failed to connect to postgres')
  }
}

/** A connection that belongs to one request or transaction. */
class BoundedClient implements PostgresPoolClient {
  readonly #client: pg.PoolClient
  readonly #access: PostgresAccess
  readonly #place: Place
  #answerMs: number
  #isBroken = false
  #isInTransaction = false

  constructor(
    client: pg.PoolClient,
    access: PostgresAccess,
    { place, firstAnswerMs }: { place: Place; firstAnswerMs: number },
  ) {
    this.#client = client
    this.#access = access
    this.#place = place
    this.#answerMs = firstAnswerMs
  }

  query<Row>(statement: string, values: readonly unknown[]): Promise<PostgresQueryResult<Row>>
  query(): never
  async query(statement?: string, values: readonly unknown[] = []): Promise<unknown> {
    // Kysely's interface also has a form that streams rows, which no query of ours uses.
    if (typeof statement !== 'string') throw new TypeError('only statements are taken')
    return this.#access.takesSettings
      ? await this.#run(statement, values)
      : await this.#runWithSettings(statement, values)
  }

  release(isDiscarded = false): void {
    // If the answer did not arrive, the connection is closed, so that the next request cannot
    // receive the late answer.
    this.#client.release(isDiscarded || this.#isBroken)
    this.#place.leave()
  }

  async #runWithSettings(statement: string, values: readonly unknown[]): Promise<unknown> {
    if (/^(begin|start transaction)/.test(statement)) {
      this.#isInTransaction = true
      return await this.#run(statement.replace(/^begin$/, this.#access.begin), [])
    }
    if (this.#isInTransaction) {
      if (/^(commit|rollback)$/.test(statement)) this.#isInTransaction = false
      return await this.#run(statement, values)
    }
    await this.#run(this.#access.begin, [])
    try {
      const result = await this.#run(statement, values)
      await this.#run('commit', [])
      return result
    } catch (error) {
      if (!this.#isBroken) await this.#run('rollback', [])
      throw error
    }
  }

  async #run(statement: string, values: readonly unknown[]): Promise<unknown> {
    const { promise: timedOut, reject } = Promise.withResolvers<never>()
    const answerMs = this.#answerMs
    const timer = new PatientTimer(answerMs, () => reject(new SilentPostgresError(answerMs)))
    this.#answerMs = ANSWER_MS_MAX
    try {
      // Without values, pg uses the simple protocol, which allows several statements at once.
      const answer = values.length === 0 ? this.#client.query(statement) : this.#client.query(statement, [...values])
      return await Promise.race([answer, timedOut])
    } catch (cause) {
      if (sqlState(cause) === undefined) this.#isBroken = true
      throw errorForCaller(cause)
    } finally {
      timer.end()
    }
  }
}

/** Postgres is connected but does not answer. */
class SilentPostgresError extends Error {
  constructor(silentMs: number) {
    super(`Postgres has not answered for ${Math.round(silentMs)} ms`)
    this.name = 'SilentPostgresError'
  }
}
