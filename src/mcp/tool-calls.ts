import { createHash } from 'node:crypto'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** Longer than any call takes, seconds. */
const LIFE_SECONDS = 900

/**
 * A call is said to be waited for each second; if a call was not for so long, its node is gone.
 * Milliseconds.
 */
const SEEN_MS_MAX = 15_000

/** The tool that a message calls; a tool that is not there makes no calls. */
export function toolOf(message: unknown): string | undefined {
  const name: unknown = Object(Object(message).params).name
  return typeof name === 'string' ? name : undefined
}

/** Where messages come from: a credential of an account (undefined: its session), and a network. */
export interface MessageSender {
  accountId: string
  keyId: string | undefined
  network: string
}

/**
 * The asynchronous calls that requests of tools wait for, by the ids of these requests: a
 * notification that cancels one comes as a message of its own, to any node.
 */
export class ToolCalls {
  readonly #redis: RedisConnection
  readonly #sender: MessageSender
  readonly #now: () => number

  /** `now` is Redis' time. */
  constructor(redis: RedisConnection, sender: MessageSender, now: () => number) {
    this.#redis = redis
    this.#sender = sender
    this.#now = now
  }

  /** Says that a request waits for a call; said again while it does. */
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
   * The call that a request waits for. Undefined if there is none, or if there are several. Clients
   * that share a credential and a network count their requests alike, so nothing says which of them
   * cancels. Calls of nodes that are gone do not count, because every client begins with the same
   * ids, and would meet them for as long as they last.
   */
  async find(requestId: unknown): Promise<string | undefined> {
    const { calls, seen } = this.#keysOf(requestId)
    const found = await this.#redis.smembers(calls)
    if (found.length <= 1) return found[0]
    const gone = new Set(await this.#redis.zrangebyscore(seen, '-inf', this.#now() - SEEN_MS_MAX))
    // A node of the version before does not say when: its calls are here until they end.
    // @until 0.4.0
    const [callId, ...others] = found.filter((id) => !gone.has(id))
    return others.length === 0 ? callId : undefined
  }

  /** A client may make its ids as long as it likes, and 1 and "1" are two. */
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
