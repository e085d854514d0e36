import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import type { FailureRow } from './snapshot.ts'

const KEPT_SECONDS = 86_400

/** Notes the last attempt at an upstream that failed. One write, for failures alone. */
export async function writeLastFailure(redis: RedisConnection, slug: string, failure: FailureRow): Promise<void> {
  await redis.set(upstreamKeys.lastFailure(slug), JSON.stringify(failure), 'EX', KEPT_SECONDS)
}

/** Null if no attempt failed in the last day. @throws what Redis throws */
export async function readLastFailure(redis: RedisConnection, slug: string): Promise<FailureRow | null> {
  const text = await redis.get(upstreamKeys.lastFailure(slug))
  return text === null ? null : (JSON.parse(text) as FailureRow)
}
