import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys, earlierCallKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import { decodeFrame, encodeFrame } from './frame.ts'
import type { Reply, ReplyHead } from './reply-head.ts'

export const RESULT_MS = 900_000

/** Larger results are stored compressed, bytes. */
const COMPRESSED_FROM_BYTES = 16 * 1024

export const RESULT_BYTES_MAX = 8 * 1024 * 1024

/** Bytes of a result's keys and of its call's record, as measured. */
const RECORD_BYTES = 2_048

const storeScript = loadScript(new URL('./lua/store-result.lua', import.meta.url), { RECORD_BYTES })
const startScript = loadScript(new URL('./lua/start-call.lua', import.meta.url))

export type ResultOf = Pick<CallJob, 'id' | 'accountId'>

/**
 * `earlier`: another result is stored already. `full`: the account's results take all their bytes.
 */
export type Storing =
  | { kind: 'kept' /** Whether a worker had begun with the call. */; isStarted: boolean }
  | { kind: 'earlier' }
  | { kind: 'full'; retryAfterMs: number }

/**
 * Stores the outcome of a call. The first outcome stays, because the caller may have received it.
 * Fails closed if the account's results exceed `bytesMax`. Undefined is no limit, for an outcome
 * without a body.
 */
export async function storeResult(
  redis: RedisConnection,
  { id, accountId, bytesMax }: ResultOf & { bytesMax?: number | undefined },
  { head, body }: Reply,
): Promise<Storing> {
  const kept = await packed({ head, body })
  const keysOfCall = [accountKeys.started(accountId, id), accountKeys.call(accountId, id)]
  const keys = [accountKeys.result(accountId, id), ...sizeKeys(accountId), ...keysOfCall]
  const reply = await storeScript.run(redis, keys, ['', kept, id, RESULT_MS, bytesMax ?? -1])
  const [kind, retryAfterMs, started] = reply as [Storing['kind'], number, number]
  if (kind === 'full') return { kind, retryAfterMs }
  return kind === 'kept' ? { kind, isStarted: started === 1 } : { kind }
}

/** Stores a result where API nodes of the earlier version look for it. @until 0.4.0 */
export async function storeForEarlierNode(redis: RedisConnection, reply: Reply): Promise<void> {
  await redis.set(earlierCallKeys.result(reply.head.id), await packed(reply), 'PX', RESULT_MS, 'NX')
}

async function packed({ head, body }: Reply): Promise<Buffer> {
  const frame = encodeFrame(head, body)
  return frame.length < COMPRESSED_FROM_BYTES ? frame : await compress(frame)
}

/** The keys that count the bytes of an account's results. */
export function sizeKeys(accountId: string): [index: string, total: string] {
  return [accountKeys.results(accountId), accountKeys.resultBytes(accountId)]
}

/** Deletes the stored results of an account, and the records of their calls. */
export async function forgetResults(redis: RedisConnection, accountId: string): Promise<void> {
  const entries = await redis.zrange(accountKeys.results(accountId), '0', '-1')
  const callKeys = entries.flatMap((entry) => {
    const [, callId = ''] = entry.split(' ')
    return [accountKeys.result(accountId, callId), accountKeys.call(accountId, callId)]
  })
  await redis.del(...callKeys, ...sizeKeys(accountId))
}

/**
 * Notes that a worker begins with a call.
 *
 * @returns false if the call already has an outcome, so that the worker must not begin
 */
export async function startCall(redis: RedisConnection, { id, accountId }: ResultOf): Promise<boolean> {
  const keys = [accountKeys.result(accountId, id), accountKeys.started(accountId, id)]
  const [mayStart, hasEarlierResult] = await Promise.all([
    startScript.run(redis, keys, [RESULT_MS]),
    redis.exists(earlierCallKeys.result(id)),
  ])
  return mayStart === 1 && hasEarlierResult === 0
}

export async function readResult(redis: RedisConnection, { id, accountId }: ResultOf): Promise<Reply | undefined> {
  const frame =
    (await redis.getBuffer(accountKeys.result(accountId, id))) ?? (await redis.getBuffer(earlierCallKeys.result(id)))
  if (frame === null) return undefined
  return decodeFrame<ReplyHead>(isCompressed(frame) ? await decompress(frame) : frame)
}

/** How long ago a result was stored, milliseconds; 0 if it does not exist. */
export async function readResultAge(redis: RedisConnection, { id, accountId }: ResultOf): Promise<number> {
  const leftMs = await redis.pttl(accountKeys.result(accountId, id))
  return leftMs < 0 ? 0 : RESULT_MS - leftMs
}

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/**
 * gzip's first bytes (RFC 1952, 2.3.1), read as a length, would be far above the length of any
 * frame.
 */
function isCompressed(frame: Buffer): boolean {
  return frame[0] === 0x1f && frame[1] === 0x8b
}
