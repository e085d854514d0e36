import { Redis } from 'ioredis'
import { capKeys, upstreamKeys } from '../../src/redis/keys.ts'
import type { Gateway } from './gateway.ts'

/** A connection to the gateway's Redis, like an operator's. Close it with `disconnect()`. */
export function openOperatorRedis(gateway: Gateway): Redis {
  return new Redis(gateway.services.redisUrl)
}

/**
 * Every call that waits for an upstream or has a permit, by the key of Redis that has it; empty
 * lists if there is no such call.
 */
export async function capTraces(redis: Redis, slug: string): Promise<Record<string, string[]>> {
  const traces: Record<string, string[]> = {}
  for (const name of ['queue', 'queueDeadlines', 'waiters', 'waiterExpiries', 'leases'] as const) {
    traces[name] = await redis.zrange(capKeys.of(slug, 'shared', name), '0', '-1')
  }
  traces.coalescer = await redis.keys(upstreamKeys.coalesced(slug, '*'))
  return traces
}

/** Whether Redis has nothing about any call to an upstream. */
export async function isCapQuiet(redis: Redis, slug: string): Promise<boolean> {
  return Object.values(await capTraces(redis, slug)).every((members) => members.length === 0)
}

/** Makes the stored answers of an upstream older by this number of seconds. */
export async function ageAnswers(redis: Redis, slug: string, seconds: number): Promise<number> {
  const keys = (await redis.keys(upstreamKeys.cacheEntry(slug, '*'))).sort()
  for (const key of keys) {
    const frame = await redis.getBuffer(key)
    if (!frame) continue
    const end = 4 + frame.readUInt32BE()
    const head = JSON.parse(frame.toString('utf8', 4, end))
    const headBytes = Buffer.from(JSON.stringify({ ...head, storedAt: head.storedAt - seconds * 1_000 }))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(headBytes.length)
    await redis.set(key, Buffer.concat([length, headBytes, frame.subarray(end)]), 'KEEPTTL')
  }
  return keys.length
}
