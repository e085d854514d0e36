import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { UpstreamCaps } from './upstream-caps.ts'

/**
 * Removes a call from the wait queue, because it would delay other calls until its deadline.
 * Returns after the first try. A failed try is repeated in the background. Never throws.
 */
export async function leaveWaitQueue(
  { caps, redis }: { caps: Pick<UpstreamCaps, 'of'>; redis: RedisConnection },
  entry: WaitQueueEntry,
): Promise<void> {
  const leave = () => caps.of(entry, entry.bucket).leaveWaitQueue(entry)
  const mayRepeat = () => redis.status !== 'end'
  await leave().catch(() => void retryUntil(leave, { ...RESTART_RETRY, mayRepeat }).catch(() => undefined))
}
