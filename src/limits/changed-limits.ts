import type { FastifyBaseLogger } from 'fastify'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { monthOf } from './month.ts'

/** A key or connection whose monthly limit was set, changed or removed. */
export interface LimitChange {
  accountId: string
  /** The id under which its calls are counted. */
  credentialId: string
  before: number | null
  after: number | null
}

/**
 * Deletes a count of the month. Without a limit nobody counts the calls of a month, so a later
 * limit must not start from an old count. Call it before the change is committed: nodes then count
 * the month from the ledger again.
 *
 * @throws what Redis throws; a limit with an unknown count must not be set
 */
export async function forgetBeforeLimit(
  { redis, clock }: { redis: RedisConnection; clock: { now: () => number } },
  change: LimitChange,
): Promise<void> {
  if (change.before === null && change.after !== null) await redis.del(monthKey(change, clock.now()))
}

/**
 * Deletes the count again. Call it after the removal of a limit was announced, because calls that
 * were admitted before may have counted until then.
 */
export async function forgetAfterLimit(
  {
    redis,
    clock,
    log,
  }: { redis: RedisConnection; clock: { now: () => number }; log: Pick<FastifyBaseLogger, 'debug'> },
  change: LimitChange,
): Promise<void> {
  if (change.before === null || change.after !== null) return
  await redis
    .del(monthKey(change, clock.now()))
    .catch((error) =>
      log.debug({ err: error }, 'failed to forget the count of a month; setting a limit forgets it too'),
    )
}

function monthKey({ accountId, credentialId }: LimitChange, now: number): string {
  return accountKeys.credentialMonth(accountId, credentialId, monthOf(now).name)
}
