import { GatewayError } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys, earlierCallKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import { RESULT_MS, type ResultOf, sizeKeys } from './results.ts'
import type { WaitQueueEntry } from './wait-queue-entry.ts'

const recordScript = loadScript(new URL('./lua/record-call.lua', import.meta.url))

/** What is stored of an asynchronous call, to find and cancel it. */
export interface AsyncCall
  extends Pick<
    CallJob,
    | 'id'
    | 'accountId'
    | 'keyId'
    | 'credentialId'
    | 'slug'
    | 'endpoint'
    | 'mode'
    | 'raw'
    | 'limitsAcquiredAt'
    | 'deadline'
    | 'replyTo'
    | 'origin'
  > {
  /** Its entry in the wait queue of its upstream; undefined if it has no entry. */
  waiting: WaitQueueEntry | undefined
}

/** The form that earlier versions read. @until 0.4.0 */
interface StoredAsyncCall extends Omit<AsyncCall, 'limitsAcquiredAt'> {
  enqueuedAt: number
}

/**
 * Stores a call until its result is deleted, or for as long as a result may be kept.
 *
 * @throws GatewayError RESULT_STORAGE_FULL; then nothing was stored
 */
export async function recordAsyncCall(
  redis: RedisConnection,
  job: CallJob,
  waiting: AsyncCall['waiting'],
): Promise<void> {
  const { id, accountId, slug, endpoint, mode, raw, limitsAcquiredAt, deadline, replyTo, keyId, credentialId, origin } =
    job
  const call: StoredAsyncCall = {
    ...{ id, accountId, slug, endpoint, mode, raw, enqueuedAt: limitsAcquiredAt, deadline, replyTo, waiting },
    ...(keyId === undefined ? {} : { keyId }),
    ...(credentialId === undefined ? {} : { credentialId }),
    ...(origin === undefined ? {} : { origin }),
  }
  const seconds = Math.ceil((deadline - limitsAcquiredAt + RESULT_MS) / 1_000)
  const keys = [accountKeys.call(accountId, id), ...sizeKeys(accountId)]
  const bytesMax = job.resultBytesMax ?? Number.MAX_SAFE_INTEGER
  const retryAfterMs = Number(await recordScript.run(redis, keys, ['', JSON.stringify(call), seconds, bytesMax]))
  if (retryAfterMs > 0) throw new GatewayError('RESULT_STORAGE_FULL', { retryAfterMs })
}

export async function readAsyncCall(
  redis: RedisConnection,
  { id, accountId }: ResultOf,
): Promise<AsyncCall | undefined> {
  const text = (await redis.get(accountKeys.call(accountId, id))) ?? (await redis.get(earlierCallKeys.call(id)))
  const stored: StoredAsyncCall | undefined = text === null ? undefined : JSON.parse(text)
  if (stored?.accountId !== accountId) return undefined
  const { enqueuedAt, ...call } = stored
  return { ...call, limitsAcquiredAt: enqueuedAt }
}
