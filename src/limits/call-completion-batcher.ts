import { randomUUID } from 'node:crypto'
import { Batcher } from '../async/batcher.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { LimitSubject } from './account-limits.ts'
import { advanceBatch, type EndedBatchCall, refundBatch } from './batch-limits.ts'
import { monthOf } from './month.ts'
import { readAcquiredAt, refundCall, releaseLimits } from './release-limits.ts'
import { recordUsage, type UsedCall } from './usage-ledger.ts'

/** Pause between two writes of usage, milliseconds: it may be shown a second or two late. */
const USAGE_PAUSE_MS = 200

/** Usage that Redis does not take within this time is lost, and logged. Milliseconds. */
const USAGE_RETRY_MS = 60_000

/** As long as Redis remembers the units of a minute, by which the calls of a batch are refunded. Milliseconds. */
const BATCH_RETRY_MS = 60_000

const COMPENSATE_EVERY_MS = 1_500
const COMPENSATE_TRIES = 4

/** Acquisitions that are compensated at one time; beyond it, leases expire and units of the month stay spent. */
const UNACKED_MAX = 2_000

/** Fails open: beyond it refusals are not counted, so that a flood cannot fill the memory. */
const REFUSALS_MAX = 10_000

/** Usage that is counted together, under an id that is made when it is sent. */
const ANY_ID = ''

interface CompletedCall {
  call: CallJob
  usageStatus: number
}

/** `at`: Redis' clock, milliseconds. */
export interface Refusal extends Pick<CallJob, 'accountId' | 'keyId' | 'mode' | 'slug'> {
  at: number
  status: number
}

/** Calls that were acquired together. `at`: about when, Redis' clock, milliseconds. */
export interface Acquisition {
  account: LimitSubject
  callIds: string[]
  at: number
}

/** Calls of a batch that ended or will not be made. `at`: when their limits were acquired, Redis' clock, milliseconds. */
export interface UnsettledBatch {
  subject: LimitSubject
  at: number
  ended?: Omit<EndedBatchCall, 'next'>[]
  dropped?: string[]
}

/** Releases the limits of an API node's completed calls, and counts calls and refusals as usage, in batches. */
export class CallCompletionBatcher {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #completed = new Batcher<CompletedCall>((_account, calls) => this.#release(calls))
  readonly #used = new Batcher<UsedCall>((id, calls) => this.#count(calls, id === ANY_ID ? randomUUID() : id), {
    pauseMs: USAGE_PAUSE_MS,
  })

  readonly #undecided = new Set<Promise<void>>()
  readonly #unsettled = new Batcher<UnsettledBatch>((_batch, parts) => this.#settle(parts))

  #refusals = 0
  readonly #unacked = new Map<string, Acquisition & { triesLeft: number }>()
  #compensating: NodeJS.Timeout | undefined

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** Releases a call's limits and counts it, in the background. */
  add(call: CallJob, usageStatus: number): void {
    const ended = { call, usageStatus }
    this.#completed.add(keyOf(call), ended)
    // An asynchronous call that could not be queued may have reached a worker all the same: under the call's id both count it once.
    this.#used.add(call.isAsync ? call.id : ANY_ID, ended)
  }

  /** The same, once it is known how the call ended; `usageStatus` never rejects. */
  addOnceKnown(call: CallJob, usageStatus: Promise<number>): void {
    const adding = usageStatus.then((known) => {
      this.add(call, known)
      this.#undecided.delete(adding)
    })
    this.#undecided.add(adding)
  }

  /** Counts a call whose limits are released elsewhere. */
  count(call: CallJob, usageStatus: number): void {
    this.#used.add(ANY_ID, { call, usageStatus })
  }

  /** A refused call holds nothing and is not charged. */
  countRefusal({ at, status, ...call }: Refusal): void {
    if (this.#refusals >= REFUSALS_MAX) return
    this.#refusals += 1
    this.#used.add(ANY_ID, { call: { ...call, limitsAcquiredAt: at }, usageStatus: status, isRefused: true })
  }

  /** Releases an account's pending calls now: its next call never finds the last one in flight. */
  flush(account: Pick<LimitSubject, 'accountId' | 'mode'>): void {
    this.#completed.flush(keyOf(account))
  }

  /** Ends and drops calls of a batch in the background, where Redis was away when they ended. */
  settleBatch(unsettled: UnsettledBatch): void {
    const { subject, at } = unsettled
    this.#unsettled.add(`${keyOf(subject)} ${monthOf(at).name} ${subject.connection?.id}`, unsettled)
  }

  /** Undoes an acquisition without acknowledgement, which Redis may still run. */
  compensate(acquisition: Acquisition): void {
    const [first] = acquisition.callIds
    if (first === undefined || this.#unacked.size >= UNACKED_MAX) return
    this.#unacked.set(first, { ...acquisition, triesLeft: COMPENSATE_TRIES })
    this.#compensating ??= setInterval(() => void this.#compensateUnacked(), COMPENSATE_EVERY_MS).unref()
  }

  /** Resolves when every call is released and counted, or has failed to be. */
  async close(): Promise<void> {
    clearInterval(this.#compensating)
    await Promise.all(this.#undecided)
    await Promise.all([this.#completed.drain(), this.#used.drain(), this.#unsettled.drain()])
    await this.#compensateUnacked()
  }

  async #compensateUnacked(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const refunds = [...this.#unacked].map(async ([first, unacked]) => {
      unacked.triesLeft -= 1
      // A new connection may overtake what the old one left in Redis' buffers: an absent call may still come.
      if (unacked.triesLeft === 0) this.#unacked.delete(first)
      if (await this.#refund(unacked)) this.#unacked.delete(first)
    })
    if (this.#unacked.size === 0) {
      clearInterval(this.#compensating)
      this.#compensating = undefined
    }
    await Promise.all(refunds)
  }

  /** @returns whether it had been acquired */
  async #refund({ account, callIds, at: notedAt }: Acquisition): Promise<boolean> {
    const [callId = '', ...others] = callIds
    try {
      // A node notes when it missed the acknowledgement, which may be in the next month.
      const at = (await readAcquiredAt(this.#redis, account, callId)) ?? notedAt
      if (others.length > 0) return await refundBatch(this.#redis, account, { callIds, at })
      return await refundCall(this.#redis, account, { callId, at })
    } catch (error) {
      this.#log.debug({ err: error, callId }, 'failed to compensate an unacknowledged acquisition')
      return false
    }
  }

  async #release(calls: CompletedCall[]): Promise<void> {
    const months = Map.groupBy(calls, ({ call }) => monthOf(call.limitsAcquiredAt).name)
    await Promise.all([...months].map(([month, ofMonth]) => this.#releaseMonth(month, ofMonth)))
  }

  async #releaseMonth(month: string, calls: CompletedCall[]): Promise<void> {
    const first = calls[0]?.call
    if (!first) return
    const ended = calls.map(({ call, usageStatus }) => ({
      callId: call.id,
      usageStatus,
      keyId: call.keyId,
      isAsync: call.isAsync,
    }))
    const release = () => releaseLimits(this.#redis, first, { month, ended })
    // Repeating it does nothing. A lease that is never released expires.
    await retryUntil(release, { ...RESTART_RETRY, mayRepeat: () => true }).catch((error) =>
      this.#log.warn({ err: error, account: first.accountId, calls: ended.length }, 'failed to release call limits'),
    )
  }

  async #settle(parts: UnsettledBatch[]): Promise<void> {
    const [first] = parts
    if (!first) return
    const ended = parts.flatMap((part) => part.ended ?? [])
    const dropped = parts.flatMap((part) => part.dropped ?? [])
    const settle = () => advanceBatch(this.#redis, first, { ended, dropped, leaseMs: 0 })
    // Repeating it does nothing: what a call took is given back with its entry of the minute or its lease.
    await retryUntil(settle, { ...RESTART_RETRY, forMs: BATCH_RETRY_MS, mayRepeat: () => true }).catch((error) =>
      this.#log.warn(
        { err: error, account: first.subject.accountId, ended: ended.length, dropped: dropped.length },
        'failed to give back what calls of a batch took',
      ),
    )
  }

  async #count(calls: UsedCall[], id: string): Promise<void> {
    try {
      await retryUntil(() => recordUsage(this.#redis, calls, id), {
        ...RESTART_RETRY,
        forMs: USAGE_RETRY_MS,
        mayRepeat: () => true,
      })
    } catch (error) {
      this.#log.warn({ err: error, calls: calls.length }, 'failed to count usage')
    } finally {
      this.#refusals -= calls.filter(({ isRefused }) => isRefused).length
    }
  }
}

function keyOf({ accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>): string {
  return `${accountId} ${mode}`
}
