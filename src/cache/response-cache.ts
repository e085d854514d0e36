import { Batcher } from '../async/batcher.ts'
import type { ErrorCode } from '../errors.ts'
import type { Log } from '../log.ts'
import { decodeFrame, encodeFrame } from '../queue/frame.ts'
import { type RedisConnection, slotOf } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import { MemoryHeadroom } from '../redis/memory-headroom.ts'
import { loadScript } from '../redis/script.ts'
import type { Lead } from './cache-key.ts'

/**
 * Size of the partitions of one upstream's stored answers, bytes of Redis' memory. A full partition
 * evicts answers of the account with the most bytes. Answers to calls with undeclared parameters
 * have their own small partition, so that made-up parameters cannot evict answers to plain calls.
 */
const PARTITION_BYTES = { plain: 16 * 1024 * 1024, undeclared: 2 * 1024 * 1024 }

/** Largest stored answer, bytes. */
const ENTRY_BYTES_MAX = 512 * 1024

/** Most answers that a single command reads or stores. */
const TOGETHER_MAX = 16

/** A larger answer gets a command of its own, bytes, because Redis serves nobody else meanwhile. */
const STORED_TOGETHER_BYTES_MAX = 32 * 1024

/** A stored answer. */
export interface CacheEntry {
  /** Time of Redis, milliseconds. */
  storedAt: number
  freshMs: number
  /** How long after freshness it may be served while it is refreshed, and if the upstream fails. */
  staleWhileRevalidateMs: number
  staleIfErrorMs: number
  /** Set for a stored "not found". */
  code?: ErrorCode
  message?: string | undefined
  /** Whether the fallback source of the API answered. */
  isFromFallback?: true | undefined
  /** The `traceparent` of the call that fetched it; absent if that call was not traced. */
  fetchedBy?: string | undefined
  body: Buffer
}

/**
 * Bytes that the partition's other keys use for an entry besides its key and its owner, as
 * measured.
 */
const INDEX_BYTES = 380

/**
 * The part of a full partition that is evicted in addition to the room for the new answer, and the
 * fewest and the most answers that each search for old answers reads. The search is the most
 * expensive part of an eviction.
 */
const EVICTED_AHEAD = 1 / 128
const EVICTED_MIN = 16
const EVICTED_MAX = 100

/** Most ended answers that a command removes from the keys that list them. */
const ENDED_MAX = 500

const storeAnswers = loadScript(new URL('./lua/store-answers.lua', import.meta.url), {
  INDEX_BYTES,
  EVICTED_AHEAD,
  EVICTED_MIN,
  EVICTED_MAX,
  ENDED_MAX,
})

/**
 * The call that fetched an answer. It decides where the answer is stored and when it is evicted.
 */
interface AnswerOrigin {
  slug: string
  hasUndeclared: boolean
  /** The account, or the share group whose accounts count together. */
  owner: string
  /** The lead of the request that fetched the answer. It ends when the answer is stored. */
  lead?: Lead | undefined
}

/** The values for one answer in the form for `store-answers.lua`. */
interface Storing {
  keys: string[]
  values: (string | number | Buffer)[]
}

/**
 * Stored answers in Redis, with limited memory for each upstream. Fails open: without it calls are
 * slower, but they work.
 */
export class ResponseCache {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #headroom: MemoryHeadroom
  readonly #reads = new Batcher<string, Buffer | null>(this.#read.bind(this), { itemsMax: TOGETHER_MAX })
  readonly #stores = new Batcher<Storing, number | string>(this.#store.bind(this), { itemsMax: TOGETHER_MAX })

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
    this.#headroom = new MemoryHeadroom(redis)
  }

  /**
   * The stored answer under a key, even if it is stale. One command reads the answers that are
   * requested in a tick of the event loop.
   */
  async get(key: string): Promise<CacheEntry | undefined> {
    try {
      const frame = await this.#reads.add(slotOf(this.#redis, key), key)
      if (frame === null) return undefined
      const { head, body } = decodeFrame<Omit<CacheEntry, 'body'>>(frame)
      return { ...head, body }
    } catch (error) {
      this.#log.debug({ err: error }, 'failed to read a stored answer')
      return undefined
    }
  }

  async #read(keys: string[]): Promise<(Buffer | null)[]> {
    const [first = '', ...others] = new Set(keys)
    if (others.length === 0) {
      const frame = await this.#redis.getBuffer(first)
      return keys.map(() => frame)
    }
    const frames = await this.#redis.mgetBuffer(first, ...others)
    const frameOf = new Map([first, ...others].map((key, index) => [key, frames[index] ?? null]))
    return keys.map((key) => frameOf.get(key) ?? null)
  }

  /**
   * Stores an answer in its partition, unless Redis is short of memory. One command stores the
   * answers of one tick of the event loop, or of three if the process is busy.
   *
   * @returns whether the answer is stored and the lead has ended
   */
  async store({ slug, hasUndeclared, owner, lead }: AnswerOrigin, key: string, entry: CacheEntry): Promise<boolean> {
    const { body, ...head } = entry
    if (body.length > ENTRY_BYTES_MAX || (await this.#headroom.isShort())) return false
    const partition = hasUndeclared ? 'undeclared' : 'plain'
    const lifeMs = entry.freshMs + Math.max(entry.staleWhileRevalidateMs, entry.staleIfErrorMs)
    const keys = [key, ...upstreamKeys.partition(slug, partition)]
    if (lead) keys.push(lead.keys.leader, lead.keys.coalesced)
    const tokens = lead?.tokens ?? []
    const times = [Math.ceil(lifeMs), Math.ceil(entry.storedAt)]
    const values = [encodeFrame(head, body), ...times, PARTITION_BYTES[partition], owner, tokens.length, ...tokens]
    try {
      const together = body.length > STORED_TOGETHER_BYTES_MAX ? key : slotOf(this.#redis, key)
      const result = await this.#stores.add(together, { keys, values })
      if (typeof result === 'number') return true
      this.#log.debug({ reason: result }, 'failed to store an answer')
    } catch (error) {
      this.#log.debug({ err: error }, 'failed to store an answer')
    }
    return false
  }

  async #store(storing: Storing[]): Promise<(number | string)[]> {
    const keys = storing.flatMap((each) => each.keys)
    const values = storing.flatMap((each) => each.values)
    return (await storeAnswers.run(this.#redis, keys, values)) as (number | string)[]
  }
}

/** Milliseconds since the end of an entry's freshness; 0 or less while it is fresh. */
export function stalenessMs(entry: CacheEntry, now: number): number {
  return now - entry.storedAt - entry.freshMs
}

/** Whether an entry may answer a call that cannot be sent to the upstream. */
export function isUsableWithoutUpstream(entry: CacheEntry, now: number): boolean {
  return stalenessMs(entry, now) <= entry.staleIfErrorMs
}
