import type { Db } from '../db/database.ts'
import { type HealthChange, insertHealthChanges } from '../db/health-changes.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'

const BATCH = 100

/**
 * Writes an upstream's state changes from Redis to Postgres. Any number of processes may do this at
 * once, and any may die in the middle: a record is removed from Redis only after it was written,
 * and its id is the key of the row, so each change is written once. While Postgres is away, the
 * records wait.
 *
 * @returns the number of records that it found
 */
export async function drainHealthChanges(redis: RedisConnection, db: Db, slug: string): Promise<number> {
  const key = upstreamKeys.healthChanges(slug)
  let count = 0
  for (;;) {
    const entries = await redis.xrange(key, '-', '+', 'COUNT', BATCH)
    if (entries.length === 0) return count
    await insertHealthChanges(
      db,
      entries.map(([id, fields]) => toChange(slug, id, fields)),
    )
    await redis.xdel(key, ...entries.map(([id]) => id))
    count += entries.length
  }
}

function toChange(slug: string, id: string, flat: string[]): HealthChange {
  const fields: Record<string, string> = {}
  for (let index = 0; index < flat.length; index += 2) fields[flat[index] ?? ''] = flat[index + 1] ?? ''
  return {
    slug,
    id,
    at: new Date(Number(fields.at)),
    from_status: fields.from ?? '',
    to_status: fields.to ?? '',
    cause: fields.cause ?? '',
    numbers: {
      score: Number(fields.score),
      ok: Number(fields.ok),
      fail: Number(fields.fail),
      p95Ms: fields.p95 ? Number(fields.p95) : null,
      code: fields.code ?? '',
      source: fields.source ?? '',
    },
  }
}
