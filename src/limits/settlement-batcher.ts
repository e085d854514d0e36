import { setTimeout as delay } from 'node:timers/promises'
import { Batcher } from '../async/batcher.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { wasNotSent } from '../redis/unavailable.ts'
import { type LimitSubject, monthOf, refundCall, releaseLimits } from './account-limits.ts'
import { recordUsage, type UsedCall } from './usage-ledger.ts'

/** What a call counts as whose caller left: no failure, so its month's unit stays spent. */
export const CALLER_LEFT_STATUS = 499

/** Usage is shown a second or two after a call: it is written at most this often, milliseconds. */
const USAGE_PAUSE_MS = 200

/** How often and how long it is tried again while Redis is away, milliseconds. */
const AGAIN_MS = 250
const AGAIN_MS_MAX = 10_000

/** How often and how many times it is tried to take back what may have been taken, while Redis is there. */
const TAKE_BACK_EVERY_MS = 1_500
const TAKE_BACK_TRIES = 4

/** Calls in doubt at one time; the leases of more than these end by themselves. */
const DOUBTFUL_MAX = 2_000

/** The calls of an API node that have ended, on their way to giving back what they held and to being counted. */
export class CallCompletionBatcher {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #ended = new Batcher<UsedCall>((_account, calls) => this.#settle(calls))
  readonly #used = new Batcher<UsedCall>((_ledger, calls) => this.#count(calls), { pauseMs: USAGE_PAUSE_MS })

  readonly #doubtful = new Map<string, { account: LimitSubject; at: number; triesLeft: number }>()
  #takingBack: NodeJS.Timeout | undefined

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
  flush(account: Pick<LimitSubject, 'accountId' | 'mode'>): void {
    this.#ended.flush(keyOf(account, Date.now()))
  }

  /**
   * Takes back what a call may have taken whose taking was not answered: Redis may run it yet, when it goes on, and
   * nobody would give it back before its lease ends.
   */
  compensate(account: LimitSubject, callId: string): void {
    if (this.#doubtful.size >= DOUBTFUL_MAX) return
    this.#doubtful.set(callId, { account, at: Date.now(), triesLeft: TAKE_BACK_TRIES })
    this.#takingBack ??= setInterval(() => this.#takeBackDoubtful(), TAKE_BACK_EVERY_MS).unref()
  }

  /** Resolves when every call that was added is settled, or has failed to be. */
  async close(): Promise<void> {
    clearInterval(this.#takingBack)
    await Promise.all([this.#ended.drain(), this.#used.drain()])
  }

  #takeBackDoubtful(): void {
    if (this.#redis.status !== 'ready') return
    for (const [callId, doubt] of this.#doubtful) {
      doubt.triesLeft -= 1
      // The new connection may be quicker than what the old one left in Redis' buffers: not there is not never.
      if (doubt.triesLeft === 0) this.#doubtful.delete(callId)
      refundCall(this.#redis, doubt.account, callId, doubt.at).then(
        (wasTaken) => wasTaken && this.#doubtful.delete(callId),
        (error) => this.#log.debug({ err: error, callId }, 'doubtful call not taken back'),
      )
    }
    if (this.#doubtful.size > 0) return
    clearInterval(this.#takingBack)
    this.#takingBack = undefined
  }

  /** All of one account, mode and month. */
  async #settle(calls: UsedCall[]): Promise<void> {
    const first = calls[0]?.call
    if (!first) return
    const ended = calls.map(({ call, status }) => ({ callId: call.id, status }))
    const settle = () => releaseLimits(this.#redis, first, monthOf(first.enqueuedAt).name, ended)
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

function keyOf({ accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>, at: number): string {
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
