import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { Batcher } from '../async/batcher.ts'
import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { CallJob } from './call-job.ts'
import { decodeFrame, encodeFrame } from './frame.ts'
import { INLINE_BYTES_MAX, storeBody, takeBody } from './reply-body.ts'
import { NO_BODY, type Reply, type ReplyHead } from './reply-head.ts'
import { readResult } from './results.ts'

const STREAM_SECONDS = 120

const STREAM_LENGTH_MAX = 10_000

const BUNDLE_REPLIES_MAX = 16

const appendScript = loadScript(new URL('./lua/append-reply.lua', import.meta.url))

const TRIM_EVERY_MS = 250
const READ_BLOCK_MS = 5_000
const READ_COUNT = 200

/** `bundledReplies`: whether the node can read several replies from one entry. */
export type ReplyAddress = Pick<CallJob, 'id' | 'accountId' | 'replyTo' | 'bundledReplies'>

/**
 * Sends replies from a worker to API nodes. Replies of one tick to one node travel as one entry.
 */
export class ReplyOutbox {
  readonly #redis: RedisConnection
  readonly #bundles: Batcher<Buffer>

  constructor(redis: RedisConnection) {
    this.#redis = redis
    this.#bundles = new Batcher(append.bind(undefined, redis), { itemsMax: BUNDLE_REPLIES_MAX })
  }

  /** @throws as `storeBody` */
  async send(address: ReplyAddress, reply: Reply): Promise<void> {
    const { replyTo, bundledReplies } = address
    const frame = await toFrame(this.#redis, address, reply)
    if (bundledReplies) await this.#bundles.add(replyTo, frame)
    else await append(this.#redis, [frame], replyTo)
  }
}

/**
 * Sends a reply alone, from a process without an outbox.
 * @throws as `storeBody`
 */
export async function sendReply(redis: RedisConnection, address: ReplyAddress, reply: Reply): Promise<void> {
  await append(redis, [await toFrame(redis, address, reply)], address.replyTo)
}

/**
 * A large body is stored, and its frame names it.
 * @throws as `storeBody`
 */
async function toFrame(redis: RedisConnection, address: ReplyAddress, { head, body }: Reply): Promise<Buffer> {
  if (body.length <= INLINE_BYTES_MAX) return encodeFrame(head, body)
  return encodeFrame({ ...head, ...(await storeBody(redis, address, body)) }, NO_BODY)
}

async function append(redis: RedisConnection, frames: Buffer[], stream: string): Promise<undefined[]> {
  const fields = frames.flatMap((frame) => ['f', frame])
  const added = await redis.xadd(stream, 'NOMKSTREAM', 'MAXLEN', '~', STREAM_LENGTH_MAX, '*', ...fields)
  // The node has ended, or Redis lost the stream. A new stream expires unless a node renews it.
  if (added === null) await makeStream(redis, stream, fields)
  return []
}

/**
 * The process may die after any command, so the stream gets its expiry together with its first
 * entry.
 */
async function makeStream(redis: RedisConnection, stream: string, fields: (string | Buffer)[]): Promise<void> {
  await appendScript.run(redis, [stream], [STREAM_SECONDS, STREAM_LENGTH_MAX, ...fields])
}

interface PendingCall {
  resolve: (reply: Reply) => void
  reject: (reason: Error) => void
}

/**
 * The reply stream of one API node, and the calls that wait on it. After a broken connection or a
 * restart of Redis, reading resumes at the last id and never at "now", so no reply is missed.
 */
export class ReplyInbox {
  readonly stream = keys.replies(randomUUID())
  readonly #reader: RedisConnection
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #pending = new Map<string, PendingCall>()
  #lastId = '0-0'
  #trimmedId = '0-0'
  #keptAt = Number.NEGATIVE_INFINITY
  #trimTimer: NodeJS.Timeout | undefined
  #closing = false
  /** Why the inbox has stopped waiting. */
  #ended: Error | undefined
  #loop: Promise<void> | undefined

  /** `reader` blocks; `redis` trims and fetches. */
  constructor(reader: RedisConnection, redis: RedisConnection, log: Log) {
    this.#reader = reader
    this.#redis = redis
    this.#log = log
  }

  open(): void {
    this.#reader.on('ready', () => {
      this.#keptAt = Number.NEGATIVE_INFINITY
    })
    this.#loop = this.#read()
    this.#trimTimer = setInterval(() => this.#trim(), TRIM_EVERY_MS)
  }

  get waiting(): number {
    return this.#pending.size
  }

  /**
   * Call it before the job is added, so that no reply is missed.
   *
   * @returns the reply, and `forget` to stop waiting
   */
  awaitReply(callId: string): { reply: Promise<Reply>; forget: () => void } {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    // It may reject before anybody listens.
    promise.catch(() => undefined)
    if (this.#ended) reject(this.#ended)
    else this.#pending.set(callId, { resolve, reject })
    return { reply: promise, forget: () => this.#pending.delete(callId) }
  }

  /** Ends the wait of all calls, including later calls, because this node is closing. */
  rejectAll(reason: Error): void {
    this.#ended = reason
    for (const { reject } of this.#pending.values()) reject(reason)
    this.#pending.clear()
  }

  async close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#trimTimer)
    this.#reader.disconnect()
    await this.#loop
    if (this.#redis.status === 'ready') await this.#redis.del(this.stream).catch(() => undefined)
  }

  async #read(): Promise<void> {
    while (!this.#closing) {
      try {
        await this.#keepStream()
        const streams = await (this.#reader as Redis).xreadBuffer(
          ...(['COUNT', READ_COUNT, 'BLOCK', READ_BLOCK_MS, 'STREAMS', this.stream, this.#lastId] as const),
        )
        for (const [id, fields] of streams?.[0]?.[1] ?? []) {
          this.#lastId = id.toString()
          // Names and values alternate. The entry that created the stream has an empty value.
          for (let index = 1; index < fields.length; index += 2) {
            const frame = fields[index]
            try {
              if (frame?.length) this.#deliver(frame)
            } catch (error) {
              // If a frame cannot be read, only its own call's reply is lost.
              this.#log.warn({ err: error }, 'failed to read a reply')
            }
          }
        }
      } catch (error) {
        if (this.#closing) return
        this.#log.debug({ err: error }, 'failed to read replies')
        await delay(100)
      }
    }
  }

  /**
   * Makes the stream and renews its life. If the node made the stream, it reads from the start. If
   * a worker made it, because Redis had lost it, the node goes on from the last id: ids are times.
   */
  async #keepStream(): Promise<void> {
    if (performance.now() - this.#keptAt < READ_BLOCK_MS) return
    if ((await this.#reader.expire(this.stream, STREAM_SECONDS)) === 0) {
      // Only an entry can create a stream. Readers skip this entry.
      await makeStream(this.#reader, this.stream, ['n', ''])
      this.#lastId = '0-0'
    }
    this.#keptAt = performance.now()
  }

  #deliver(frame: Buffer): void {
    const reply = decodeFrame<ReplyHead>(frame)
    const { head } = reply
    const pending = this.#pending.get(head.id)
    // It is a second reply because the job ran twice, or the caller has left. Reading a stored body
    // deletes it. Otherwise it would take memory of Redis until it expires.
    if (!pending) {
      if (head.bodyKey) this.#readStored(head).catch(() => undefined)
      return
    }
    this.#pending.delete(head.id)
    const isInFrame = head.bodyKey === undefined && head.storedFor === undefined && !head.isStored
    if (isInFrame) {
      pending.resolve(reply)
      return
    }
    this.#readStored(head).then(pending.resolve, (error) => {
      this.#log.warn({ err: error, callId: head.id }, 'failed to read the stored body of a reply')
      pending.reject(error)
    })
  }

  /**
   * Reads a body that has a key of its own, or is stored with the result of an asynchronous call.
   * Workers of an earlier version only set `isStored` then. @until 0.4.0
   *
   * @throws GatewayError if it is gone, and what Redis throws
   */
  async #readStored(head: ReplyHead): Promise<Reply> {
    const { id, bodyKey, storedFor = '' } = head
    if (bodyKey === undefined) {
      const result = await readResult(this.#redis, { id, accountId: storedFor })
      if (result) return result
    } else {
      const body = await takeBody(this.#redis, { ...head, bodyKey }, this.#log)
      if (body) return { head, body }
    }
    throw new GatewayError('DEPENDENCY_UNAVAILABLE', { cause: new Error('Redis has lost the body') })
  }

  #trim(): void {
    if (this.#trimmedId === this.#lastId || this.#redis.status !== 'ready') return
    const id = this.#lastId
    const [milliseconds, sequence] = id.split('-')
    this.#redis.xtrim(this.stream, 'MINID', `${milliseconds}-${Number(sequence) + 1}`).then(
      () => {
        this.#trimmedId = id
      },
      (error) => this.#log.debug({ err: error }, 'failed to trim replies'),
    )
  }
}
