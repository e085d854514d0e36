import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Caps } from '../catalog/upstream.ts'
import { readCapGrants } from '../db/cap-grants.ts'
import type { Db } from '../db/database.ts'
import type { CapBucket } from '../queue/wait-queue-entry.ts'
import { redisNow } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

const MINUTE_MS = 60_000

/**
 * Since when Redis remembers what was sent: 0 if from the start, otherwise when its loss was
 * noticed (time of Redis, milliseconds). Postgres distinguishes a new installation from a wiped
 * Redis. If it cannot, a loss is assumed.
 */
export async function readRememberedSince(redis: RedisConnection, db: Db): Promise<number> {
  const known = await redis.get(keys.rememberedSince)
  if (known !== null) return Number(known)
  const now = await redisNow(redis)
  const since = (await isNewInstallation(db)) ? 0 : now
  await redis.set(keys.rememberedSince, since, 'NX')
  return Number((await redis.get(keys.rememberedSince)) ?? since)
}

/** Whether the installation is at most ten seconds old. Its first look-up is stored. */
async function isNewInstallation(db: Db): Promise<boolean> {
  try {
    const { rows } = await sql<{ fresh: boolean }>`
      insert into installation (id, instance) values (1, ${randomUUID()})
      on conflict (id) do update set id = 1
      returning created_at > now() - interval '10 seconds' as fresh
    `.execute(db)
    return rows[0]?.fresh === true
  } catch {
    // Fails closed: without Postgres it is unknown, and closing a cap for a window is better than
    // exceeding it.
    return false
  }
}

/**
 * A cap's past according to Postgres. The requests of a minute are assumed at its end, so that no
 * request leaves its window too early. `now` is the time of Redis.
 */
export async function readPastGrants(
  db: Db,
  { slug, bucket, caps, now }: { slug: string; bucket: CapBucket; caps: Caps; now: number },
): Promise<{ at: number; granted: number }[]> {
  const widestMs = Math.max(...caps.rates.map(({ seconds }) => seconds * 1_000))
  const grants = await readCapGrants(db, { slug, bucket }, new Date(now - widestMs - MINUTE_MS))
  return grants.map(({ minute, granted }) => ({ at: Math.min(minute.getTime() + MINUTE_MS, now), granted }))
}
