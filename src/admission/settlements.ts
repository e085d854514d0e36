import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { Gathered } from '../redis/gathered.ts'
import { recordUsage, type UsedCall } from '../usage/ledger.ts'
import { monthOf, settleLimits } from './limits.ts'

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
    this.#ended.add(`${call.accountId} ${call.mode} ${monthOf(call.enqueuedAt).name}`, ended)
    this.#used.add('', ended)
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
    await settleLimits(this.#redis, first, monthOf(first.enqueuedAt).name, ended).catch((error) =>
      // Their leases end by themselves.
      this.#log.warn({ err: error, account: first.accountId, calls: ended.length }, 'calls not settled'),
    )
  }

  async #count(calls: UsedCall[]): Promise<void> {
    await recordUsage(this.#redis, calls).catch((error) =>
      this.#log.warn({ err: error, calls: calls.length }, 'calls not counted as used'),
    )
  }
}
