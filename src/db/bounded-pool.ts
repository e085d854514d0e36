import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import pg from 'pg'
import { PatientTimer } from '../async/patient-timer.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { type Place, Places, PooledClient, startLimit, type WaitLimit } from './pool-waits.ts'
import { PostgresAccess } from './postgres-access.ts'

/** Longest a statement may run on the server, milliseconds. */
const STATEMENT_MS_MAX = 1_500

/** Longest a transaction may stay idle on the server, milliseconds. */
const IDLE_IN_TRANSACTION_MS_MAX = 5_000

/**
 * SQLSTATE of a Postgres all of whose connections are taken: by the server, the database or the
 * role.
 */
const TOO_MANY_CONNECTIONS = '53300'

/** SQLSTATE of a row that refers to a row that does not exist. */
const FOREIGN_KEY_VIOLATION = '23503'

/**
 * How long a pool makes do with the connections that it has after Postgres refused it another
 * connection, milliseconds.
 */
const CROWDED_MS = 5_000

/**
 * Longest from the request for a connection to the answer of its first statement, and longest for
 * every further statement, milliseconds. The server's own limit comes first; this limit is for a
 * server that says nothing.
 */
const ANSWER_MS_MAX = 1_800

export interface PoolOptions {
  url: string
  log: Log
  connectionsMax: number
  /** Connections that stay open while nobody uses them. */
  connectionsMin?: number
}

/**
 * A pool of Postgres connections that answers in time. Every failure to get an answer is thrown as
 * DEPENDENCY_UNAVAILABLE: no connection, a broken connection, a server that is silent, overloaded
 * or read-only. Errors of the statement itself are thrown as pg throws them. Works through
 * PgBouncer in transaction mode too.
 */
export class BoundedPool implements PostgresPool {
  readonly options = {}
  readonly #options: PoolOptions
  readonly #access: PostgresAccess
  readonly #places: Places
  #pool: pg.Pool
  #loggedReason = ''
  /** Connections that stand; the pool's own count includes connections that are being made. */
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

  /** The pool goes on to connect if the limit ends the wait: the place is taken until then. */
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
      min: this.#options.connectionsMin ?? 0,
      Client: PooledClient,
    })
    // Each connection has a listener of its own while it is in use: the pool listens to idle
    // connections alone, and an error nobody listens to would end the process.
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
      // The pool of a refused way has no connection. It is not closed, because requests that wait
      // in it come here too.
      if (pool !== this.#pool) return await this.#checkOut(limit)
      if (!limit.isOver && this.#makesDo(pool, cause)) return await this.#checkOut(limit)
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
   * When Postgres has no connection left, requests wait for a connection that the pool has, as they
   * wait in a pool that is full. Fails closed without any: nothing could become free.
   */
  #makesDo(pool: pg.Pool, cause: unknown): boolean {
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

  /** Once for each reason: an outage makes a failure of every request. */
  #logFailure(cause: unknown): void {
    const reason = sqlState(cause) ?? (cause instanceof Error ? cause.message : '')
    if (reason === this.#loggedReason) return
    this.#loggedReason = reason
    const { host, pathname } = new URL(this.#options.url)
    this.#options.log.warn({ err: cause, host, database: pathname.slice(1) }, 'failed to connect to postgres')
  }
}

/** A connection for as long as one request or transaction has it. */
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
    // The other form of Kysely's interface streams rows; no query of ours does.
    if (typeof statement !== 'string') throw new TypeError('only statements are taken')
    return this.#access.takesSettings
      ? await this.#run(statement, values)
      : await this.#runWithSettings(statement, values)
  }

  release(isDiscarded = false): void {
    // A connection whose answer did not come is closed: the late answer must not meet the next
    // request.
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
      // Without values the simple protocol is used, which takes several statements at once.
      const answer = values.length === 0 ? this.#client.query(statement) : this.#client.query(statement, [...values])
      return await Promise.race([answer, timedOut])
    } catch (cause) {
      const state = sqlState(cause)
      if (state === undefined) this.#isBroken = true
      throw isUnavailable(cause) ? unavailable(cause) : (deletedMeanwhile(cause) ?? cause)
    } finally {
      timer.end()
    }
  }
}

/** Postgres is connected and says nothing. */
class SilentPostgresError extends Error {
  constructor(silentMs: number) {
    super(`Postgres has not answered for ${Math.round(silentMs)} ms`)
    this.name = 'SilentPostgresError'
  }
}

/** SQLSTATE of an error that the server sent; undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/**
 * Whether Postgres could not answer: SQLSTATE classes 08, 53 and 57, 25006 (read-only), deadlocks
 * and serialisation failures, all of which pass by themselves, and everything that is no answer of
 * the server (a broken or silent connection) but a mistake of ours.
 */
function isUnavailable(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return /^(08|53|57)/.test(state) || ['25006', '40P01', '40001'].includes(state)
  return error instanceof Error && !(error instanceof TypeError || error instanceof RangeError)
}

/**
 * What a row refers to, by the foreign key that has no row any more. The first that fits counts.
 */
const REFERRED: [foreignKey: RegExp, code: ErrorCode][] = [
  [/^team_members_user_id_fkey$/, 'USER_NOT_FOUND'],
  [/_(user|owner|account)_id_fkey$/, 'INVALID_TOKEN'],
  [/_team_id_fkey$/, 'TEAM_NOT_FOUND'],
  [/_connection_id_fkey$/, 'CONNECTION_NOT_FOUND'],
]

/**
 * The refusal if what a new row refers to was deleted after the request had found it, for example
 * the account of the request. Undefined for every other error.
 */
function deletedMeanwhile(cause: unknown): GatewayError | undefined {
  if (sqlState(cause) !== FOREIGN_KEY_VIOLATION) return undefined
  const { constraint = '' } = cause as pg.DatabaseError
  const referred = REFERRED.find(([foreignKey]) => foreignKey.test(constraint))
  return referred && new GatewayError(referred[1], { cause })
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 2_000, cause })
}
