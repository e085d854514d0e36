import { Batcher } from '../../src/async/batcher.ts'
import { BEGUN, type Lead } from '../../src/cache/cache-key.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { type RedisConnection, slotOf } from '../../src/redis/connection.ts'
import { extendLock, releaseLock } from '../../src/redis/lock.ts'
import { loadScript } from '../../src/redis/script.ts'
import type { CallProgress } from '../upstream/outcome.ts'

/** Lifetime of a leader's key, and the interval of its renewal. Milliseconds. */
const LEADER_MS = 3_000
const LEADER_RENEW_MS = 1_000

/** Most leads that one command takes. */
const TAKEN_TOGETHER_MAX = 16

const takeLeads = loadScript(new URL('./lua/take-leads.lua', import.meta.url), { LEADER_MS, BEGUN })

export const hasBegun = ({ isUnderWay = false, reach }: CallProgress): boolean =>
  isUnderWay || hasReached(reach, 'maybe-sent')

/** A request that leads, or wants to lead, the identical requests of all processes. */
interface LeadingRequest {
  lead: Lead
  progress: CallProgress
}

interface Taking {
  lead: Lead
  mayOvertake: boolean
}

interface Taken {
  isLeader: boolean
  /**
   * This request leads, but an answer is already stored, because the previous leader may have
   * stored it.
   */
  hasAnswer: boolean
}

/** Decides which process leads, by a key in Redis that the leader renews and ends. */
export class Leads {
  readonly #redis: RedisConnection
  readonly #takings = new Batcher<Taking, Taken & { other: string }>(this.#take.bind(this), {
    itemsMax: TAKEN_TOGETHER_MAX,
  })

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /**
   * Takes the lead if it is free, or if a request in another process has it that may be overtaken.
   * One command takes the leads of a tick of the event loop, or of three.
   *
   * @throws what Redis throws
   */
  async take({ lead, progress }: LeadingRequest, mayOvertake: boolean): Promise<Taken> {
    const taken = await this.#takings.add(slotOf(this.#redis, lead.keys.leader), { lead, mayOvertake })
    // At the deadline of a follower, the outcome depends on how far the leader's request got.
    progress.isUnderWay = taken.other.endsWith(BEGUN)
    progress.reach = progress.isUnderWay ? 'maybe-sent' : 'unsent'
    return taken
  }

  /** `other`: the token of the other request that has, or had, the lead; empty if there is none. */
  async #take(takings: Taking[]): Promise<(Taken & { other: string })[]> {
    const keys: string[] = []
    const values: (string | number)[] = []
    for (const { lead, mayOvertake } of takings) {
      keys.push(lead.keys.leader, lead.keys.answer)
      values.push(lead.tokens[0], mayOvertake ? 1 : 0)
    }
    const replies = (await takeLeads.run(this.#redis, keys, values)) as (number | string)[]
    return takings.map((_, index) => {
      const [isLeader, other, hasAnswer] = replies.slice(3 * index)
      return { isLeader: isLeader === 1, other: String(other), hasAnswer: hasAnswer === 1 }
    })
  }

  /**
   * Renews the lead from now on.
   * @returns how to stop
   */
  renew({ lead: { keys, tokens: both }, progress }: LeadingRequest): () => void {
    const renewing = setInterval(() => {
      // The lock keeps the first token.
      const tokens = hasBegun(progress) ? both.toReversed() : both
      extendLock(this.#redis, keys.leader, { tokens, lifeMs: LEADER_MS }).catch(() => undefined)
    }, LEADER_RENEW_MS)
    return () => clearInterval(renewing)
  }

  /**
   * Ends the lead if this request still holds it, and with it the name of the queued call whose
   * answer identical calls share. The call stays in the wait queue. Not awaited, because Redis runs
   * the command before all that this process sends later.
   */
  end({ keys, tokens }: Lead): void {
    releaseLock(this.#redis, [keys.leader, keys.coalesced], tokens).catch(() => undefined)
  }
}
