import { Cluster } from 'ioredis'
import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { Stores } from './snapshot.ts'

/** Memory and latency of Redis and Postgres; null for a store that does not answer. */
export async function readStores(redis: RedisConnection, db: Db): Promise<Stores> {
  const [redisState, postgres] = await Promise.all([
    readRedis(redis).catch(() => null),
    readPostgres(db).catch(() => null),
  ])
  return { redis: redisState, postgres }
}

async function readRedis(redis: RedisConnection): Promise<Stores['redis']> {
  const startedAt = performance.now()
  // INFO instead of PING, because a Redis that cannot write its file refuses PING like a write.
  const info = await redis.info()
  const latencyMs = performance.now() - startedAt
  const text = (name: string): string | undefined => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1]
  const field = (name: string): number => Number(text(name) ?? 0)
  const file = text('aof_enabled')
  const evictionPolicy = text('maxmemory_policy')
  // Buffers for replicas and for the append-only file do not count against `maxmemory`.
  const countedBytes = field('used_memory') - field('mem_not_counted_for_evict')
  const isOverMax = field('maxmemory') > 0 && countedBytes > field('maxmemory')
  return {
    usedBytes: field('used_memory'),
    maxBytes: field('maxmemory'),
    latencyMs,
    clients: field('connected_clients'),
    opsPerSecond: field('instantaneous_ops_per_sec'),
    evictionPolicy,
    hasFile: file === undefined ? undefined : file === '1',
    isFileFailing: text('aof_last_write_status') === 'err',
    // A node of a Cluster may be a replica; its primary takes the writes.
    isReplica: text('role') === 'slave' && !(redis instanceof Cluster),
    isFull: isOverMax && (evictionPolicy ?? 'noeviction') === 'noeviction',
  }
}

async function readPostgres(db: Db): Promise<Stores['postgres']> {
  const startedAt = performance.now()
  await sql`select 1`.execute(db)
  const latencyMs = performance.now() - startedAt
  const { rows } = await sql<{ bytes: string; connections: string }>`
    select pg_database_size(current_database()) as bytes,
      (select count(*) from pg_stat_activity where datname = current_database()) as connections`.execute(db)
  return { bytes: Number(rows[0]?.bytes ?? 0), connections: Number(rows[0]?.connections ?? 0), latencyMs }
}
