import type { Db } from '../db/database.ts'
import { type HealthChange, insertHealthChanges } from '../db/health-changes.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'

const BATCH = 100

/**
 * Writes an upstream's state changes from Redis to Postgres. Any number of processes may do it at
 * once and any may die on the way: a record leaves Redis after it is written, and its id is the
 * row's key, so that each change is written once. Without Postgres the records wait.
 *
 * @returns how many records were there
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
