import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import type { ReplyHead } from './reply-head.ts'

/** Larger bodies get their own key, which the stream names. Bytes. */
export const INLINE_BYTES_MAX = 64 * 1024

const BODY_MS = 60_000

/** Most bytes of the unread bodies of one account. */
const BODIES_BYTES_MAX = 16 * 1024 * 1024

const storeScript = loadScript(new URL('./lua/store-body.lua', import.meta.url), { BODIES_BYTES_MAX })

export type StoredBody = Required<Pick<ReplyHead, 'bodyKey' | 'bodyIndex' | 'bodyMember'>>

/**
 * Stores a body that is too large for the stream.
 *
 * @throws GatewayError OVERLOADED if the account's other bodies take all the room
 */
export async function storeBody(
  redis: RedisConnection,
  { id, accountId }: Pick<CallJob, 'id' | 'accountId'>,
  body: Buffer,
): Promise<StoredBody> {
  const stored: StoredBody = {
    bodyKey: accountKeys.body(accountId, id),
    bodyIndex: accountKeys.bodies(accountId),
    bodyMember: `${body.length} ${id}`,
  }
  const keys = [stored.bodyKey, stored.bodyIndex]
  const retryAfterMs = Number(await storeScript.run(redis, keys, ['', body, stored.bodyMember, BODY_MS]))
  if (retryAfterMs === 0) return stored
  const cause = new Error('bodies of other replies to the account wait to be taken')
  throw new GatewayError('OVERLOADED', { retryAfterMs, cause })
}

/**
 * Reads and deletes a body.
 * @returns null if it is gone
 */
export async function takeBody(
  redis: RedisConnection,
  { bodyKey, bodyIndex, bodyMember }: Pick<ReplyHead, 'bodyIndex' | 'bodyMember'> & { bodyKey: string },
  log: Log,
): Promise<Buffer | null> {
  // Nobody waits for the index. A member that stays in it expires.
  if (bodyIndex !== undefined && bodyMember !== undefined) {
    redis.zrem(bodyIndex, bodyMember).catch((error) => log.debug({ err: error }, 'failed to count a body as taken'))
  }
  return await redis.getdelBuffer(bodyKey)
}
