import type { Duplex } from 'node:stream'
import pg from 'pg'
import { PatientTimer } from '../async/patient-timer.ts'

/** Longest wait of a request for a connection of the pool, milliseconds. */
const CONNECT_MS_MAX = 1_000

/** No connection was available in time. */
class NoConnectionError extends Error {
  constructor() {
    super(`no connection to Postgres in ${CONNECT_MS_MAX} ms`)
    this.name = 'NoConnectionError'
  }
}

/**
 * A connection of the pool that ends if it cannot connect in time. The pool's own time limit is a
 * plain timer, which after a standstill of this process would end connections that have been ready
 * for long.
 */
export class PooledClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // pg has no public method to end a connection that is still being opened.
    const { connection } = this as unknown as { connection: { stream: Duplex } }
    const timer = new PatientTimer(CONNECT_MS_MAX, () => connection.stream.destroy(new NoConnectionError()))
    this.once('connect', () => timer.end())
    this.once('end', () => timer.end())
  }
}

/** How long a request waits, in total, for its place and its connection. */
export interface WaitLimit {
  /** Rejects when the time has passed. */
  late: Promise<never>
  readonly isOver: boolean
  readonly countedMs: number
  end: () => void
}

export function startLimit(): WaitLimit {
  const { promise: late, reject } = Promise.withResolvers<never>()
  late.catch(() => undefined)
  const timer = new PatientTimer(CONNECT_MS_MAX, () => reject(new NoConnectionError()))
  return {
    late,
    get isOver() {
      return timer.countedMs >= CONNECT_MS_MAX
    },
    get countedMs() {
      return timer.countedMs
    },
    end: () => timer.end(),
  }
}

/**
 * The right of a request to use a connection of the pool, whether it is open or has to be opened.
 * There are as many places as the pool may have connections.
 */
export interface Place {
  granted: Promise<void>
  leave: () => void
}

/**
 * Hands out places, as many as the pool may have connections. Other requests wait here in their
 * order and leave when their time has passed. In the pool's own queue they would stay.
 */
export class Places {
  readonly #waiting = new Set<() => void>()
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  take(): Place {
    const { promise: granted, resolve } = Promise.withResolvers<void>()
    if (this.#free > 0) {
      this.#free -= 1
      resolve()
    } else this.#waiting.add(resolve)
    return { granted, leave: once(() => this.#leave(resolve)) }
  }

  #leave(resolve: () => void): void {
    if (this.#waiting.delete(resolve)) return
    const [next] = this.#waiting
    if (!next) this.#free += 1
    else {
      this.#waiting.delete(next)
      next()
    }
  }
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}
