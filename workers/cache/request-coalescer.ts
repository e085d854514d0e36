import { setTimeout as delay } from 'node:timers/promises'
import type { CacheKeys } from '../../src/cache/cache-key.ts'
import { decodeFrame, encodeFrame } from '../../src/queue/frame.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { loadScript } from '../../src/redis/script.ts'
import type { CallProgress } from '../upstream/call-upstream.ts'
import { type Failure, isFailure, type Outcome } from '../upstream/outcome.ts'

/** How long a leader counts as alive after it last said so, and how often it does. Milliseconds. */
const LEADER_MS = 3_000
const LEADER_RENEW_MS = 1_000

/** How long a landed flight's outcome waits for followers in other processes, milliseconds. */
const LANDED_MS = 1_500

const FOLLOW_EVERY_MS = 40

const lead = loadScript(new URL('./lua/lead.lua', import.meta.url))

/** One who waits for a flight. */
export interface Subscriber {
  callId: string
  /** Redis time, milliseconds. */
  deadline: number
  signal: AbortSignal
  progress: CallProgress
}

/** The flight as its work sees it: it ends when the last passenger has left. */
export interface Flight {
  signal: AbortSignal
  /** The latest deadline of its passengers. */
  deadline: () => number
  /** For all of them. */
  progress: CallProgress
}

interface LocalFlight {
  outcome: Promise<{ outcome: Outcome; isLeader: boolean }>
  passengers: Set<Subscriber>
  deadline: number
  progress: CallProgress
  ending: AbortController
}

/** Lets identical calls, of the whole fleet, share one request: one leads, the others follow. */
export class RequestCoalescer {
  readonly #redis: RedisConnection
  readonly #coalescer = new Map<string, LocalFlight>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /** Whether a call of this process waits for this answer already. */
  isUnderWay(keys: CacheKeys): boolean {
    return this.#coalescer.has(keys.entry)
  }

  /** The outcome of the flight under these keys; `work` makes it when nobody else does. */
  async join(
    keys: CacheKeys,
    passenger: Subscriber,
    work: (flight: Flight) => Promise<Outcome>,
  ): Promise<{ outcome: Outcome; isCollapsed: boolean }> {
    const known = this.#coalescer.get(keys.entry)
    const flight = known ?? this.#depart(keys, passenger, work)
    flight.passengers.add(passenger)
    passenger.progress.shared = flight.progress
    flight.deadline = Math.max(flight.deadline, passenger.deadline)
    try {
      const { outcome, isLeader } = await Promise.race([flight.outcome, aborted(passenger.signal)])
      return { outcome, isCollapsed: known !== undefined || !isLeader }
    } finally {
      flight.passengers.delete(passenger)
      if (flight.passengers.size === 0) {
        // Who comes while it ends begins another one.
        this.#forget(keys, flight)
        flight.ending.abort(new Error('nobody waits for the answer'))
      }
    }
  }

  #forget(keys: CacheKeys, flight: LocalFlight): void {
    if (this.#coalescer.get(keys.entry) === flight) this.#coalescer.delete(keys.entry)
  }

  #depart(keys: CacheKeys, { callId, deadline }: Subscriber, work: (flight: Flight) => Promise<Outcome>): LocalFlight {
    const ending = new AbortController()
    const flight: LocalFlight = {
      passengers: new Set(),
      deadline,
      progress: {},
      ending,
      outcome: Promise.resolve().then(() => run()),
    }
    const run = async (): Promise<{ outcome: Outcome; isLeader: boolean }> => {
      try {
        return await this.#lead(
          keys,
          callId,
          { signal: ending.signal, deadline: () => flight.deadline, progress: flight.progress },
          work,
        )
      } finally {
        this.#forget(keys, flight)
      }
    }
    // Its passengers may all have left when it fails.
    flight.outcome.catch(() => undefined)
    this.#coalescer.set(keys.entry, flight)
    return flight
  }

  /** Leads, or waits for what another process's leader brings. */
  async #lead(
    keys: CacheKeys,
    callId: string,
    flight: Flight,
    work: (flight: Flight) => Promise<Outcome>,
  ): Promise<{ outcome: Outcome; isLeader: boolean }> {
    const leaders = new Set<string>()
    while (true) {
      const leader = await this.#redis.set(keys.leader, callId, 'PX', LEADER_MS, 'NX', 'GET')
      const isLeader = leader === null
      if (leader !== null) leaders.add(leader)
      const landed = leaders.size === 0 ? undefined : await this.#landedOf(keys.landed, leaders)
      if (landed) {
        if (isLeader) await lead.run(this.#redis, [keys.leader], [callId, 0])
        return { outcome: landed, isLeader: false }
      }
      if (isLeader) return { outcome: await this.#fly(keys, callId, flight, work), isLeader: true }
      await delay(FOLLOW_EVERY_MS, undefined, { signal: flight.signal })
    }
  }

  async #fly(
    keys: CacheKeys,
    callId: string,
    flight: Flight,
    work: (flight: Flight) => Promise<Outcome>,
  ): Promise<Outcome> {
    const renewing = setInterval(() => {
      lead.run(this.#redis, [keys.leader], [callId, LEADER_MS]).catch(() => undefined)
    }, LEADER_RENEW_MS)
    try {
      const outcome = await work(flight)
      // Fails open: where Redis takes no writes the followers in other processes ask the upstream themselves.
      await this.#redis.set(keys.landed, landedFrame(outcome, callId), 'PX', LANDED_MS).catch(() => undefined)
      return outcome
    } finally {
      clearInterval(renewing)
      await lead.run(this.#redis, [keys.leader], [callId, 0]).catch(() => undefined)
      await this.#redis.del(keys.flight).catch(() => undefined)
    }
  }

  /** What a leader that was seen on its way brought: an earlier outcome may be one that must not be stored. */
  async #landedOf(key: string, leaders: Set<string>): Promise<Outcome | undefined> {
    const frame = await this.#redis.getBuffer(key)
    if (frame === null) return undefined
    const { head, body } = decodeFrame<Landed>(frame)
    if (!leaders.has(head.leader)) return undefined
    return head.failure ?? { body }
  }
}

interface Landed {
  leader: string
  failure?: Failure
}

function landedFrame(outcome: Outcome, leader: string): Buffer {
  if (!isFailure(outcome)) return encodeFrame({ leader } satisfies Landed, outcome.body)
  const { cause: _cause, ...failure } = outcome
  return encodeFrame({ leader, failure } satisfies Landed, Buffer.alloc(0))
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
