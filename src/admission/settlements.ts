import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { Gathered } from '../redis/gathered.ts'
import { recordUsage, type UsedCall } from '../usage/ledger.ts'
import { type Charged, monthOf, settleLimits } from './limits.ts'

/** How often and how long it is tried again while Redis is away, milliseconds. */
const AGAIN_MS = 250
const AGAIN_MS_MAX = 10_000

/** The calls of an API node that have ended, on their way to giving back what they held and to being counted. */
export class Settlements {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #ended = new Gathered<UsedCall>((_account, calls) => this.#settle(calls))
  readonly #used = new Gathered<UsedCall>((_ledger, calls) => this.#count(calls))

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** Settles a call that ended with this status. Its caller does not wait for it. */
  add(call: CallJob, status: number): void {
    const ended = { call, status }
    this.#ended.add(keyOf(call, call.enqueuedAt), ended)
    this.#used.add('', ended)
  }

  /** Writes what has gathered for an account now: what is written next comes after it. */
  flush(account: Pick<Charged, 'accountId' | 'mode'>): void {
    this.#ended.flush(keyOf(account, Date.now()))
  }

  /** Resolves when every call that was added is settled, or has failed to be. */
  async close(): Promise<void> {
    await Promise.all([this.#ended.sent(), this.#used.sent()])
  }

  /** All of one account, mode and month. */
  async #settle(calls: UsedCall[]): Promise<void> {
    const first = calls[0]?.call
    if (!first) return
    const ended = calls.map(({ call, status }) => ({ callId: call.id, status }))
    const settle = () => settleLimits(this.#redis, first, monthOf(first.enqueuedAt).name, ended)
    // A second time does nothing. What is not settled in the end: its lease ends by itself.
    await untilWritten(settle, () => true).catch((error) =>
      this.#log.warn({ err: error, account: first.accountId, calls: ended.length }, 'calls not settled'),
    )
  }

  async #count(calls: UsedCall[]): Promise<void> {
    await untilWritten(() => recordUsage(this.#redis, calls), wasNotSent).catch((error) =>
      this.#log.warn({ err: error, calls: calls.length }, 'calls not counted as used'),
    )
  }
}

function keyOf({ accountId, mode }: Pick<Charged, 'accountId' | 'mode'>, at: number): string {
  return `${accountId} ${mode} ${monthOf(at).name}`
}

/** Tries again for a while what may be tried again. @throws the last error */
async function untilWritten(write: () => Promise<unknown>, mayRepeat: (error: unknown) => boolean): Promise<void> {
  for (const endsAt = Date.now() + AGAIN_MS_MAX; ; ) {
    try {
      await write()
      return
    } catch (error) {
      if (Date.now() >= endsAt || !mayRepeat(error)) throw error
      await delay(AGAIN_MS)
    }
  }
}

/** Whether a command failed before it left: the connection was not up. */
function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.includes("Stream isn't writeable")
}
