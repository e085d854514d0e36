import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** A day: an account that nobody calls with for so long is looked up anew. */
const VERSION_SECONDS = 86_400

/** The account's version now; made when there is none, never one that was there before. */
export async function readAccountVersion(redis: RedisConnection, accountId: string): Promise<string> {
  const fresh = newVersion()
  return (await redis.set(accountKeys.version(accountId), fresh, 'EX', VERSION_SECONDS, 'NX', 'GET')) ?? fresh
}

/** Whether a version is still the account's: if not, what was looked up under it is to be looked up again. */
export async function isCurrentVersion(redis: RedisConnection, accountId: string, version: string): Promise<boolean> {
  return (await redis.get(accountKeys.version(accountId))) === version
}

/**
 * Makes every node forget what it remembers of an account: a revoked key or session, a new tier, a disabled account
 * counts from the next request on. Call it after the change is committed.
 */
async function renewAccountVersion(redis: RedisConnection, accountId: string): Promise<void> {
  await redis.set(accountKeys.version(accountId), newVersion(), 'EX', VERSION_SECONDS)
}

/** Longest a change is announced anew, milliseconds: by then no node remembers what was before it. */
const ANNOUNCE_MS_MAX = 120_000
const ANNOUNCE_AGAIN_MS = 250

/**
 * As `renewAccountVersion`, after a committed change, which holds whether the write to Redis succeeds now or later. Without
 * Redis no call is admitted, and a node that loses it forgets whom it knew; where only this node has lost it, the
 * others hear of the change as soon as it is back.
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
