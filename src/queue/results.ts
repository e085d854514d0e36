import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys, earlierCallKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import { decodeFrame, encodeFrame, type Reply, type ReplyHead } from './frame.ts'

/** How long the result of an asynchronous call is kept, milliseconds. */
export const RESULT_MS = 900_000

/** Results from this size on are kept compressed, bytes: many may be kept at once. */
const COMPRESSED_FROM_BYTES = 16 * 1024

/** Largest result that is kept, bytes. */
export const RESULT_BYTES_MAX = 8 * 1024 * 1024

/** What a result counts beside its own bytes: its keys, and what is remembered of the call. As measured. */
const RECORD_BYTES = 2_048

const storeScript = loadScript(new URL('./lua/store-result.lua', import.meta.url), { RECORD_BYTES })

/** The call whose result is kept. */
export type ResultOf = Pick<CallJob, 'id' | 'accountId'>

/** What came of keeping a result: it is kept, another one is, or the account's results take all the bytes they may. */
export type Storing = { kind: 'kept' | 'earlier' } | { kind: 'full'; retryAfterMs: number }

/**
 * Keeps the outcome of a call that nobody may be waiting for. The first one stays: what a caller has received does not
 * change when its job runs twice. Fails closed: past `bytesMax`, the bytes that all results of the account may take,
 * nothing is kept. Undefined: no bound, for an outcome without a body.
 */
export async function storeResult(
  redis: RedisConnection,
  { id, accountId, bytesMax }: ResultOf & { bytesMax?: number | undefined },
  { head, body }: Reply,
): Promise<Storing> {
  const kept = await packed({ head, body })
  const keys = [accountKeys.result(accountId, id), ...roomKeys(accountId)]
  const reply = await storeScript.run(redis, keys, ['', kept, id, RESULT_MS, bytesMax ?? -1])
  const [kind, retryAfterMs] = reply as ['kept' | 'earlier' | 'full', number]
  return kind === 'full' ? { kind, retryAfterMs } : { kind }
}

/** Keeps a result for an API node of the version before, which looks for it elsewhere. */
export async function storeForEarlierNode(redis: RedisConnection, reply: Reply): Promise<void> {
  await redis.set(earlierCallKeys.result(reply.head.id), await packed(reply), 'PX', RESULT_MS, 'NX')
}

async function packed({ head, body }: Reply): Promise<Buffer> {
  const frame = encodeFrame(head, body)
  return frame.length < COMPRESSED_FROM_BYTES ? frame : await compress(frame)
}

/** Index of an account's kept results, and their bytes. */
export function roomKeys(accountId: string): [index: string, total: string] {
  return [accountKeys.results(accountId), accountKeys.resultBytes(accountId)]
}

/** Whether the outcome of a call is kept already. */
export async function hasResult(redis: RedisConnection, { id, accountId }: ResultOf): Promise<boolean> {
  const keys = [accountKeys.result(accountId, id), earlierCallKeys.result(id)]
  return (await Promise.all(keys.map((key) => redis.exists(key)))).includes(1)
}

/** The kept outcome of a call; undefined while there is none. */
export async function readResult(redis: RedisConnection, { id, accountId }: ResultOf): Promise<Reply | undefined> {
  const frame =
    (await redis.getBuffer(accountKeys.result(accountId, id))) ?? (await redis.getBuffer(earlierCallKeys.result(id)))
  if (frame === null) return undefined
  return decodeFrame<ReplyHead>(isCompressed(frame) ? await decompress(frame) : frame)
}

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/** A frame begins with a length far below what gzip's first bytes (RFC 1952, 2.3.1) would make. */
function isCompressed(frame: Buffer): boolean {
  return frame[0] === 0x1f && frame[1] === 0x8b
}
