import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import type { ReplyHead } from './frame.ts'

/** Bodies above this go into a key of their own; the stream carries where. Bytes. */
const INLINE_BYTES_MAX = 32 * 1024

/** How long a body waits for its node, milliseconds. */
const BODY_MS = 60_000

/** What the bodies of one account's replies may take together, bytes: they are there until their nodes have taken them. */
const BODIES_BYTES_MAX = 16 * 1024 * 1024

const storeScript = loadScript(new URL('./lua/store-body.lua', import.meta.url), { BODIES_BYTES_MAX })

/** Where a body waits for its node. */
export type StoredBody = Required<Pick<ReplyHead, 'bodyKey' | 'bodyIndex' | 'bodyMember'>>

/**
 * Puts a large body where its node finds it.
 *
 * @returns where; undefined for a body that is small enough for the stream
 * @throws Error when the account's other bodies have to be taken first: the reply is to be sent again
 */
export async function storeBody(
  redis: RedisConnection,
  { id, accountId }: Pick<CallJob, 'id' | 'accountId'>,
  body: Buffer,
): Promise<StoredBody | undefined> {
  if (body.length <= INLINE_BYTES_MAX) return undefined
  const stored: StoredBody = {
    bodyKey: accountKeys.body(accountId, id),
    bodyIndex: accountKeys.bodies(accountId),
    bodyMember: `${body.length} ${id}`,
  }
  const isStored = await storeScript.run(
    redis,
    [stored.bodyKey, stored.bodyIndex],
    ['', body, stored.bodyMember, BODY_MS],
  )
  if (isStored !== 1) throw new Error('bodies of other replies to the account wait to be taken')
  return stored
}

/** Takes a body away: for the caller, or because nobody waits for it. @returns null when it is gone */
export async function takeBody(
  redis: RedisConnection,
  { bodyKey, bodyIndex, bodyMember }: Pick<ReplyHead, 'bodyIndex' | 'bodyMember'> & { bodyKey: string },
  log: Log,
): Promise<Buffer | null> {
  // Nobody waits for the index: what stays in it by mistake ends by itself.
  if (bodyIndex !== undefined && bodyMember !== undefined) {
    redis.zrem(bodyIndex, bodyMember).catch((error) => log.debug({ err: error }, 'failed to count a body as taken'))
  }
  return await redis.getdelBuffer(bodyKey)
}
