import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Announcements } from '../redis/announcements.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { channels, keys } from '../redis/keys.ts'

/** The sender of messages: an account's credential (undefined: a session) and a network. */
export interface MessageSender {
  accountId: string
  keyId: string | undefined
  network: string
}

/** How long nodes wait for the counts of the other nodes, milliseconds. */
const COUNT_MS = 100

/** Lifetime of a count, seconds. */
const COUNT_SECONDS = 10

export interface RunningToolsDeps {
  redis: RedisConnection
  announcements: Pick<Announcements, 'on'>
  log: Log
  /** Ends when the other nodes have counted. */
  counted?: () => Promise<unknown>
}

/**
 * The tools that run on this node, by the ids of their requests. A notification that cancels a
 * request is a separate message and may reach another node, so that node announces it to all
 * nodes. A tool that nobody cancels costs Redis nothing.
 */
export class RunningTools {
  readonly #redis: RedisConnection
  readonly #counted: () => Promise<unknown>
  readonly #running = new Map<string, Set<AbortController>>()

  constructor({ redis, announcements, log, counted = () => delay(COUNT_MS) }: RunningToolsDeps) {
    this.#redis = redis
    this.#counted = counted
    announcements.on(channels.cancelRequest, (message) => {
      // Fails open: without Redis, no notification cancels a tool, which then ends normally.
      this.#onCancel(message).catch((error) => log.debug({ err: error }, 'failed to cancel a tool'))
    })
  }

  /** Runs a tool. A notification with the id of its request aborts the controller. */
  async run<T>(
    { sender, requestId }: { sender: MessageSender; requestId: unknown },
    controller: AbortController,
    tool: () => Promise<T>,
  ): Promise<T> {
    const name = nameOf(sender, requestId)
    const running = this.#running.get(name) ?? new Set()
    this.#running.set(name, running.add(controller))
    try {
      return await tool()
    } finally {
      running.delete(controller)
      if (running.size === 0) this.#running.delete(name)
    }
  }

  /** Announces that the sender cancels a request. */
  async cancel(sender: MessageSender, requestId: unknown): Promise<void> {
    await this.#redis.publish(channels.cancelRequest, `${nameOf(sender, requestId)} ${randomUUID()}`)
  }

  /**
   * Aborts the tool if it is the only tool of all nodes that the notification can mean. Clients
   * with the same credential and network may use the same request ids, so with two tools it would
   * be unclear which of them to abort.
   */
  async #onCancel(message: string): Promise<void> {
    const [name = '', notification = ''] = message.split(' ')
    const controllers = [...(this.#running.get(name) ?? [])]
    if (controllers.length === 0) return
    const count = keys.cancellable(notification)
    await Promise.all([this.#redis.incrby(count, controllers.length), this.#redis.expire(count, COUNT_SECONDS)])
    await this.#counted()
    if ((await this.#redis.get(count)) !== '1') return
    for (const controller of controllers)
      controller.abort(new GatewayError('CALL_CANCELLED', { message: 'The caller cancelled the request.' }))
  }
}

/**
 * The name of a request among all senders. It is a digest, because a client may use ids of any
 * length. The numeric id 1 and the text "1" differ.
 */
function nameOf({ accountId, keyId, network }: MessageSender, requestId: unknown): string {
  const text = JSON.stringify([accountId, keyId ?? null, network, requestId])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
