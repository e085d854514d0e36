import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** An account without calls for so long is looked up anew. */
const VERSION_SECONDS = 86_400

/** Made when there is none, never one that was there before. */
export async function readAccountVersion(redis: RedisConnection, accountId: string): Promise<string> {
  const fresh = newVersion()
  return (await redis.set(accountKeys.version(accountId), fresh, 'EX', VERSION_SECONDS, 'NX', 'GET')) ?? fresh
}

export async function isCurrentVersion(redis: RedisConnection, accountId: string, version: string): Promise<boolean> {
  return (await redis.get(accountKeys.version(accountId))) === version
}

/** Makes every node look the account up again from the next request on. Call it after the change is committed. */
async function renewAccountVersion(redis: RedisConnection, accountId: string): Promise<void> {
  await redis.set(accountKeys.version(accountId), newVersion(), 'EX', VERSION_SECONDS)
}

/** By then no node remembers what was before the change. */
const ANNOUNCE_MS_MAX = 120_000
const ANNOUNCE_AGAIN_MS = 250

/**
 * After a committed change, which holds whether or not the write to Redis succeeds now. Without Redis no call is
 * admitted, and a node that loses it forgets its principals; otherwise other nodes get the change when Redis is back.
 */
export async function announceChange(
  redis: RedisConnection,
  accountId: string,
  log: Pick<FastifyBaseLogger, 'warn'>,
): Promise<void> {
  try {
    await renewAccountVersion(redis, accountId)
  } catch (error) {
    log.warn({ err: error, accountId }, 'failed to announce the change of an account; trying again')
    void announceLater(redis, accountId, Date.now() + ANNOUNCE_MS_MAX)
  }
}

async function announceLater(redis: RedisConnection, accountId: string, until: number): Promise<void> {
  while (Date.now() < until && redis.status !== 'end') {
    await delay(ANNOUNCE_AGAIN_MS, undefined, { ref: false })
    const isDone = await renewAccountVersion(redis, accountId).then(
      () => true,
      () => false,
    )
    if (isDone) return
  }
}

function newVersion(): string {
  return randomBytes(9).toString('base64url')
}
