import { createHash } from 'node:crypto'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'

/** Longer than any call takes, seconds. */
const LIFE_SECONDS = 900

/** Where messages come from: a credential of an account (undefined: its session), and a network. */
export interface MessageSender {
  accountId: string
  keyId: string | undefined
  network: string
}

/**
 * The asynchronous calls that requests of tools wait for, by the ids of these requests: a notification that cancels one
 * comes as a message of its own, to any node.
 */
export class ToolCalls {
  readonly #redis: RedisConnection
  readonly #sender: MessageSender

  constructor(redis: RedisConnection, sender: MessageSender) {
    this.#redis = redis
    this.#sender = sender
  }

  async add(requestId: unknown, callId: string): Promise<void> {
    const key = this.#keyOf(requestId)
    await this.#redis.sadd(key, callId)
    await this.#redis.expire(key, LIFE_SECONDS)
  }

  async remove(requestId: unknown, callId: string): Promise<void> {
    await this.#redis.srem(this.#keyOf(requestId), callId)
  }

  /**
   * The call that a request waits for. Undefined where there is none, and where there are several: clients that share a
   * credential and a network count their requests alike, and which of them cancels cannot be told.
   */
  async find(requestId: unknown): Promise<string | undefined> {
    const [callId, ...others] = await this.#redis.smembers(this.#keyOf(requestId))
    return others.length === 0 ? callId : undefined
  }

  /** A client may make its ids as long as it likes, and 1 and "1" are two. */
  #keyOf(requestId: unknown): string {
    const { accountId, keyId = 'session', network } = this.#sender
    const digest = createHash('sha256')
      .update(JSON.stringify([network, requestId]))
      .digest('base64url')
      .slice(0, 22)
    return accountKeys.toolCalls(accountId, keyId, digest)
  }
}
