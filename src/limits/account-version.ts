import { randomBytes } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { retryUntil } from '../async/retry-until.ts'
import { GatewayError, isDependencyAway } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** Lifetime of a version. After it the account is looked up again. */
const VERSION_SECONDS = 86_400

/**
 * The version of an account. If the account has none, a new version is made that it never had.
 */
export async function readAccountVersion(redis: RedisConnection, accountId: string): Promise<string> {
  const fresh = randomBytes(9).toString('base64url')
  return (await redis.set(accountKeys.version(accountId), fresh, 'EX', VERSION_SECONDS, 'NX', 'GET')) ?? fresh
}

export async function isCurrentVersion(redis: RedisConnection, accountId: string, version: string): Promise<boolean> {
  return (await redis.get(accountKeys.version(accountId))) === version
}

/**
 * Makes every node look the account up again from the next request on, and make a new version. Call
 * it after the change is committed. A full Redis refuses to store but still deletes, so a revoked
 * key is refused then too.
 */
async function endAccountVersion(redis: RedisConnection, accountId: string): Promise<void> {
  await redis.del(accountKeys.version(accountId))
}

/** After `forMs` no node remembers the state before the change. */
const ANNOUNCE_RETRY = { everyMs: 250, forMs: 120_000 }

/**
 * Makes a change of accounts and announces it, even if it is unknown whether the change was
 * committed. A refused change is not announced. `change` may add accounts to the set, or remove
 * them. Without Redis no call is admitted, and a node that loses its connection forgets its
 * principals, so a missed announcement does no harm. If only this node has lost Redis, other nodes
 * get the change when it reconnects.
 * @throws what the change throws
 */
export async function withAnnouncement<T>(
  { redis, log }: { redis: RedisConnection; log: Pick<FastifyBaseLogger, 'warn'> },
  accountIds: string[],
  change: (accountIds: Set<string>) => Promise<T>,
): Promise<T> {
  const accounts = new Set(accountIds)
  try {
    return await change(accounts)
  } catch (error) {
    if (error instanceof GatewayError && !isDependencyAway(error)) accounts.clear()
    throw error
  } finally {
    await Promise.all([...accounts].map((accountId) => announceChange(redis, accountId, log)))
  }
}

async function announceChange(
  redis: RedisConnection,
  accountId: string,
  log: Pick<FastifyBaseLogger, 'warn'>,
): Promise<void> {
  try {
    await endAccountVersion(redis, accountId)
  } catch (error) {
    log.warn({ err: error, accountId }, 'failed to announce the change of an account; trying again')
    const repeating = { ...ANNOUNCE_RETRY, mayRepeat: () => redis.status !== 'end' }
    retryUntil(() => endAccountVersion(redis, accountId), repeating).catch(() => undefined)
  }
}
