import type { ErrorCode } from '../errors.ts'
import type { Log } from '../log.ts'
import { decodeFrame, encodeFrame } from '../queue/frame.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'

/** Room for the stored answers of one upstream, bytes; those that end soonest make way. */
const BYTES_MAX_PER_UPSTREAM = 16 * 1024 * 1024

/** Larger answers are not stored, bytes. */
const ENTRY_BYTES_MAX = 512 * 1024

/** A stored answer. */
export interface CacheEntry {
  /** Redis time, milliseconds. */
  storedAt: number
  freshMs: number
  /** After freshness: how long it may be served while it is refreshed, and when the upstream fails. */
  staleWhileRevalidateMs: number
  staleIfErrorMs: number
  /** A kept "no such thing" instead of data. */
  code?: ErrorCode
  message?: string
  body: Buffer
}

/**
 * Stores an entry and keeps the upstream's entries within their room. KEYS entry, index (by end), sizes.
 * ARGV frame, life ms, now, size, room.
 */
const STORE = new Script(`
local now = tonumber(ARGV[3])
local function drop(keys)
  for _, key in ipairs(keys) do
    local size = redis.call('HGET', KEYS[3], key)
    if size then redis.call('HINCRBY', KEYS[3], 'total', '-' .. size) end
    redis.call('HDEL', KEYS[3], key)
    redis.call('ZREM', KEYS[2], key)
    redis.call('DEL', key)
  end
end
drop(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 500))
drop({KEYS[1]})
local room = tonumber(ARGV[5]) - tonumber(ARGV[4])
while tonumber(redis.call('HGET', KEYS[3], 'total') or 0) > room do
  local first = redis.call('ZRANGE', KEYS[2], 0, 9)
  if #first == 0 then break end
  drop(first)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), KEYS[1])
redis.call('HSET', KEYS[3], KEYS[1], ARGV[4])
redis.call('HINCRBY', KEYS[3], 'total', ARGV[4])
return 1
`)

/**
 * Stored answers in Redis, bounded in memory per upstream. It fails open: without it calls are slower, not broken.
 */
export class ResponseCache {
  readonly #redis: RedisConnection
  readonly #log: Log

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** The stored answer under a key, stale ones included. */
  async get(key: string): Promise<CacheEntry | undefined> {
    try {
      const frame = await this.#redis.getBuffer(key)
      if (frame === null) return undefined
      const { head, body } = decodeFrame<Omit<CacheEntry, 'body'>>(frame)
      return { ...head, body }
    } catch (error) {
      this.#log.debug({ err: error }, 'cache not read')
      return undefined
    }
  }

  async store(slug: string, key: string, entry: CacheEntry): Promise<void> {
    const { body, ...head } = entry
    if (body.length > ENTRY_BYTES_MAX) return
    const frame = encodeFrame(head, body)
    const lifeMs = entry.freshMs + Math.max(entry.staleWhileRevalidateMs, entry.staleIfErrorMs)
    const keys = [key, upstreamKeys.cacheIndex(slug), upstreamKeys.cacheSizes(slug)]
    const values = [
      frame,
      Math.ceil(lifeMs),
      Math.ceil(entry.storedAt),
      frame.length + key.length,
      BYTES_MAX_PER_UPSTREAM,
    ]
    await STORE.run(this.#redis, keys, values).catch((error) => this.#log.debug({ err: error }, 'answer not stored'))
  }
}

/** How old an entry is past its freshness, milliseconds; 0 or less while it is fresh. */
export function stalenessMs(entry: CacheEntry, now: number): number {
  return now - entry.storedAt - entry.freshMs
}

/** Whether an entry may answer a call that cannot be sent to the upstream. */
export function isUsableWithoutUpstream(entry: CacheEntry, now: number): boolean {
  return stalenessMs(entry, now) <= entry.staleIfErrorMs
}
