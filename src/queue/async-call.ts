import type { RedisConnection } from '../redis/connection.ts'
import { callKeys } from '../redis/keys.ts'
import type { CallJob } from './call-job.ts'
import type { QueueEntry } from './queue-entry.ts'

/** How long after its deadline a call is remembered, seconds: as long as its result is kept. */
const REMEMBERED_SECONDS = 900

/** What is remembered of an asynchronous call, to find it again and to cancel it. */
export interface AsyncCall
  extends Pick<
    CallJob,
    | 'id'
    | 'accountId'
    | 'keyId'
    | 'slug'
    | 'endpoint'
    | 'mode'
    | 'raw'
    | 'enqueuedAt'
    | 'deadline'
    | 'providerKey'
    | 'replyTo'
  > {
  /** Its entry in the wait queue of its upstream; undefined where it has none. */
  waiting: QueueEntry | undefined
}

/** Remembers a call whose result will be asked for. */
export async function recordAsyncCall(
  redis: RedisConnection,
  job: CallJob,
  waiting: AsyncCall['waiting'],
): Promise<void> {
  const { id, accountId, slug, endpoint, mode, raw, enqueuedAt, deadline, replyTo, keyId, providerKey } = job
  const call: AsyncCall = {
    ...{ id, accountId, slug, endpoint, mode, raw, enqueuedAt, deadline, replyTo, waiting },
    ...(keyId === undefined ? {} : { keyId }),
    ...(providerKey === undefined ? {} : { providerKey }),
  }
  const seconds = Math.ceil((deadline - enqueuedAt) / 1_000) + REMEMBERED_SECONDS
  await redis.set(callKeys.call(id), JSON.stringify(call), 'EX', seconds)
}

/** The call of this id; undefined when there is none. */
export async function readAsyncCall(redis: RedisConnection, callId: string): Promise<AsyncCall | undefined> {
  const text = await redis.get(callKeys.call(callId))
  return text === null ? undefined : JSON.parse(text)
}
