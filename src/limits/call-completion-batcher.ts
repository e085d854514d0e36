import { randomUUID } from 'node:crypto'
import { Batcher } from '../async/batcher.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { LimitSubject } from './account-limits.ts'
import { refundOf } from './charge.ts'
import { type CallToEnd, endCalls, readAcquiredAt } from './end-calls.ts'
import { recordUsage, type UsedCall } from './usage-ledger.ts'

/** How long usage is gathered before it is written, milliseconds: it may be shown a second or two late. */
const USAGE_GATHER_MS = 200

/** Usage that Redis does not take within this time is lost, and logged. Milliseconds. */
const USAGE_RETRY_MS = 60_000

/** Ends that Redis does not take within this time are logged. Redis remembers the units of a minute for so long. Milliseconds. */
const END_RETRY_MS = 60_000

const COMPENSATE_EVERY_MS = 1_500
const COMPENSATE_TRIES = 4

/** Acquisitions that are compensated at one time; beyond it, leases expire and units of the month stay spent. */
const UNACKED_MAX = 2_000

/** Fails open: beyond it refusals are not counted, so that a flood cannot fill the memory. */
const REFUSALS_MAX = 10_000

/** Usage that is counted together, under an id that is made when it is sent. */
const ANY_ID = ''

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

/** A call of an account that ended. */
interface OwnedCall {
  account: Pick<LimitSubject, 'accountId' | 'mode'>
  ended: CallToEnd
}

/** Releases the limits of an API node's completed calls, and counts calls and refusals as usage, in batches. */
export class CallCompletionBatcher {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #ended = new Batcher<OwnedCall>((_account, calls) => this.#end(calls))
  readonly #used = new Batcher<UsedCall>((id, calls) => this.#count(calls, id === ANY_ID ? randomUUID() : id), {
    gatherMs: USAGE_GATHER_MS,
  })

  readonly #undecided = new Set<Promise<void>>()

  #refusals = 0
  readonly #unacked = new Map<string, Acquisition & { triesLeft: number }>()
  #compensating: NodeJS.Timeout | undefined

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** Releases a call's limits and counts it, in the background. */
  add(call: CallJob, usageStatus: number): void {
    const { id: callId, limitsAcquiredAt: at, keyId, isAsync } = call
    this.release(call, { callId, at, keyId, isAsync, refund: refundOf(usageStatus) })
    // An asynchronous call that could not be queued may have reached a worker all the same: under the call's id both count it once.
    void this.#used.add(call.isAsync ? call.id : ANY_ID, { call, usageStatus })
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
    void this.#used.add(ANY_ID, { call, usageStatus })
  }

  /** A refused call holds nothing and is not charged. */
  countRefusal({ at, status, ...call }: Refusal): void {
    if (this.#refusals >= REFUSALS_MAX) return
    this.#refusals += 1
    void this.#used.add(ANY_ID, { call: { ...call, limitsAcquiredAt: at }, usageStatus: status, isRefused: true })
  }

  /** Releases an account's pending calls now: its next call never finds the last one in flight. */
  flush(account: Pick<LimitSubject, 'accountId' | 'mode'>): void {
    this.#ended.flush(keyOf(account))
  }

  /** Ends the lease of a call and gives back what the call does not cost, in the background, also if Redis is away now. */
  release(account: Pick<LimitSubject, 'accountId' | 'mode'>, ended: CallToEnd): void {
    void this.#ended.add(keyOf(account), { account, ended })
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
    await Promise.all([this.#ended.drain(), this.#used.drain()])
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
    const [first = ''] = callIds
    try {
      // A node notes when it missed the acknowledgement, which may be in the next month.
      const at = (await readAcquiredAt(this.#redis, account, first)) ?? notedAt
      const calls = callIds.map((callId) => ({ callId, at, keyId: account.connection?.id, refund: 'all' as const }))
      return (await endCalls(this.#redis, account, { calls })).ended > 0
    } catch (error) {
      this.#log.debug({ err: error, callId: first }, 'failed to compensate an unacknowledged acquisition')
      return false
    }
  }

  async #end(owned: OwnedCall[]): Promise<undefined[]> {
    const [first] = owned
    if (!first) return []
    const calls = owned.map(({ ended }) => ended)
    const end = () => endCalls(this.#redis, first.account, { calls })
    // Repeating it does nothing. A lease that nobody ends expires.
    await retryUntil(end, { ...RESTART_RETRY, forMs: END_RETRY_MS, mayRepeat: () => true }).catch((error) =>
      this.#log.warn(
        { err: error, account: first.account.accountId, calls: calls.length },
        'failed to release call limits',
      ),
    )
    return []
  }

  async #count(calls: UsedCall[], id: string): Promise<undefined[]> {
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
    return []
  }
}

function keyOf({ accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>): string {
  return `${accountId} ${mode}`
}
