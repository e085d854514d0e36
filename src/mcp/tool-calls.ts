import { createHash } from 'node:crypto'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** Lifetime of the keys, seconds. No call takes longer. */
const LIFE_SECONDS = 900

/**
 * A waiting node reports each call every second. If it has not for so long, the node is dead.
 * Milliseconds.
 */
const SEEN_MS_MAX = 15_000

/** The tool that a message calls. If the tool does not exist, there will be no calls. */
export function toolOf(message: unknown): string | undefined {
  const name: unknown = Object(Object(message).params).name
  return typeof name === 'string' ? name : undefined
}

/** The sender of messages: an account's credential (undefined: a session) and a network. */
export interface MessageSender {
  accountId: string
  keyId: string | undefined
  network: string
}

/**
 * The asynchronous calls for which requests of tools wait, by the ids of these requests. A
 * notification that cancels a request is a separate message, and may reach any node.
 */
export class ToolCalls {
  readonly #redis: RedisConnection
  readonly #sender: MessageSender
  readonly #now: () => number

  /** @param now the time of Redis */
  constructor(redis: RedisConnection, sender: MessageSender, now: () => number) {
    this.#redis = redis
    this.#sender = sender
    this.#now = now
  }

  /** Records that a request waits for a call. Repeated while it waits. */
  async add(requestId: unknown, callId: string): Promise<void> {
    const { calls, seen } = this.#keysOf(requestId)
    await Promise.all([
      this.#redis.zadd(seen, this.#now(), callId),
      this.#redis.expire(seen, LIFE_SECONDS),
      this.#redis.sadd(calls, callId),
      this.#redis.expire(calls, LIFE_SECONDS),
    ])
  }

  async remove(requestId: unknown, callId: string): Promise<void> {
    const { calls, seen } = this.#keysOf(requestId)
    await Promise.all([this.#redis.srem(calls, callId), this.#redis.zrem(seen, callId)])
  }

  /**
   * The call for which a request waits. Undefined if there is none, or more than one: clients with
   * the same credential and network may use the same request ids, so it would be unclear which call
   * to cancel. Calls of dead nodes are ignored, because every client begins with the same ids and
   * would meet these calls for as long as they last.
   */
  async find(requestId: unknown): Promise<string | undefined> {
    const { calls, seen } = this.#keysOf(requestId)
    const found = await this.#redis.smembers(calls)
    if (found.length <= 1) return found[0]
    const gone = new Set(await this.#redis.zrangebyscore(seen, '-inf', this.#now() - SEEN_MS_MAX))
    // Nodes of the earlier version do not record the time, so their calls count until they end.
    // @until 0.4.0
    const [callId, ...others] = found.filter((id) => !gone.has(id))
    return others.length === 0 ? callId : undefined
  }

  /**
   * The ids are hashed, because a client may use ids of any length. The numeric id 1 and the text
   * "1" differ.
   */
  #keysOf(requestId: unknown): { calls: string; seen: string } {
    const { accountId, keyId = 'session', network } = this.#sender
    const digest = createHash('sha256')
      .update(JSON.stringify([network, requestId]))
      .digest('base64url')
      .slice(0, 22)
    return {
      calls: accountKeys.toolCalls(accountId, keyId, digest),
      seen: accountKeys.toolCallsSeen(accountId, keyId, digest),
    }
  }
}
