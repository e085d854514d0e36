import { randomUUID } from 'node:crypto'
import { Batcher, type Items } from '../async/batcher.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import { refundOf, type Verdict } from '../queue/verdict.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { LimitSubject } from './account-limits.ts'
import { type CallToEnd, type EndStep, endCalls, type NextCall, NOTHING_ENDED, readAcquiredAt } from './end-calls.ts'
import { countedCredential } from './limit-state.ts'
import { recordUsage, type UsedCall } from './usage-ledger.ts'

/**
 * How long usage is collected before it is written, milliseconds. It may be shown a second or two
 * late.
 */
const USAGE_GATHER_MS = 200

/**
 * How long ends and usage that Redis does not accept are retried, milliseconds; after that they are
 * lost, and logged. Redis keeps the units of a minute for the same time.
 */
const REPEAT = { ...RESTART_RETRY, forMs: 60_000 }

const COMPENSATE_EVERY_MS = 1_500
const COMPENSATE_TRIES = 4

/**
 * Most acquisitions that are being undone at once. Beyond it, leases expire by themselves and units
 * of the month stay spent.
 */
const UNACKED_MAX = 2_000

/**
 * Most refusals that wait. Fails open: further refusals are not counted, so that a flood cannot
 * fill the memory.
 */
const REFUSALS_MAX = 10_000

type Account = Pick<LimitSubject, 'accountId' | 'mode'>

/** A call that ends. Without `id` the call took no units, because it was refused before that. */
interface EndingCall extends Pick<CallJob, 'accountId' | 'keyId' | 'credentialId' | 'mode' | 'slug'> {
  id?: string
  isAsync?: boolean
  /** The time of Redis, milliseconds. It decides for which day and month the call counts. */
  limitsAcquiredAt: number
}

/** Calls that took their units together. `at` is about when, in the time of Redis, milliseconds. */
interface Acquisition {
  account: LimitSubject
  callIds: string[]
  at: number
}

/**
 * Ends the calls of an API node for their accounts, in batches: releases their limits, and counts
 * them as usage.
 */
export class CallEndBatcher {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #ends = new Batcher<Account & CallToEnd, EndStep>(this.#end.bind(this))
  /**
   * Pending calls by the id under which each is counted once. Calls without an id are counted
   * together.
   */
  readonly #used = new Batcher<UsedCall>(this.#count.bind(this), { gatherMs: USAGE_GATHER_MS })
  readonly #underWay = new Set<Promise<unknown>>()
  #refusals = 0
  readonly #unacked = new Map<string, Acquisition & { triesLeft: number }>()
  #compensating: NodeJS.Timeout | undefined

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /**
   * Ends a call: ends its lease, gives back units as the verdict says, and counts the call. Nobody
   * has to wait for it.
   * @param verdict a promise if it is not known yet; it must not reject
   * @returns when Redis has done this. Rejects if the first try fails: the batcher then repeats the
   *   end for a minute in the background, and `next` does not get the lease
   */
  end(call: EndingCall, verdict: Verdict | Promise<Verdict>, next?: NextCall): Promise<EndStep> {
    if (verdict instanceof Promise) return this.#follow(verdict.then((known) => this.end(call, known, next)))
    this.#countEnd(call, verdict)
    const { id, accountId, mode, credentialId, limitsAcquiredAt, isAsync } = call
    if (id === undefined) return NOTHING_ENDED
    const ofCall = { id, accountId, mode, credentialId, limitsAcquiredAt, isAsync }
    return handled(this.#ends.add(keyOf(call), { ...ofCall, refund: refundOf(verdict), next }))
  }

  /**
   * Ends an account's pending calls now, so that its next call never finds the previous call in
   * flight.
   */
  flush(account: Account): void {
    this.#ends.flush(keyOf(account))
  }

  /** Undoes an acquisition that was not acknowledged. Redis may still run it. */
  compensate(acquisition: Acquisition): void {
    const [first] = acquisition.callIds
    if (first === undefined || this.#unacked.size >= UNACKED_MAX) return
    this.#unacked.set(first, { ...acquisition, triesLeft: COMPENSATE_TRIES })
    this.#compensating ??= setInterval(() => void this.#compensateUnacked(), COMPENSATE_EVERY_MS).unref()
  }

  /** Resolves when every call was released and counted, or when the tries for it have ended. */
  async close(): Promise<void> {
    clearInterval(this.#compensating)
    await Promise.allSettled(this.#underWay)
    await this.#ends.drain()
    await Promise.allSettled(this.#underWay)
    await this.#used.drain()
    await this.#compensateUnacked()
  }

  #follow<T>(work: Promise<T>): Promise<T> {
    const followed = handled(work.finally(() => this.#underWay.delete(followed)))
    this.#underWay.add(followed)
    return followed
  }

  #countEnd(call: EndingCall, verdict: Verdict): void {
    if (verdict.reach === 'refused') {
      if (this.#refusals >= REFUSALS_MAX) return
      this.#refusals += 1
    }
    // If adding the job of an asynchronous call failed, Redis may still have queued it, and a
    // worker may run it. Both sides record usage under the call's id, so it is counted once.
    const id = call.isAsync && verdict.reach !== 'refused' ? call.id : undefined
    void this.#used.add(id ?? '', { call, verdict })
  }

  async #compensateUnacked(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const refunds = [...this.#unacked].map(async ([first, unacked]) => {
      unacked.triesLeft -= 1
      // Commands on a new connection may overtake commands of the old connection that Redis still
      // has in its buffers. So an absent call may still arrive.
      if (unacked.triesLeft === 0) this.#unacked.delete(first)
      if (await this.#refund(unacked)) this.#unacked.delete(first)
    })
    if (this.#unacked.size === 0) {
      clearInterval(this.#compensating)
      this.#compensating = undefined
    }
    await Promise.all(refunds)
  }

  /** @returns whether the call had taken units */
  async #refund({ account, callIds, at: notedAt }: Acquisition): Promise<boolean> {
    const [first = ''] = callIds
    try {
      // The node records when it missed the acknowledgement, which may already be in the next
      // month.
      const limitsAcquiredAt = (await readAcquiredAt(this.#redis, account, first)) ?? notedAt
      const credentialId = countedCredential(account)
      const calls = callIds.map((id) => ({ id, limitsAcquiredAt, credentialId, refund: 'all' as const }))
      return (await endCalls(this.#redis, account, { calls })).ended > 0
    } catch (error) {
      this.#log.debug({ err: error, callId: first }, 'failed to compensate an unacknowledged acquisition')
      return false
    }
  }

  async #end(calls: Items<Account & CallToEnd>): Promise<EndStep[]> {
    const [account] = calls
    try {
      const step = await endCalls(this.#redis, account, { calls })
      return calls.map(() => step)
    } catch (error) {
      this.#repeat(account, calls)
      throw error
    }
  }

  /**
   * Repeats ending the calls in the background. This is harmless if they had ended. The leases are
   * not passed on to the next calls of a batch, because the batch gave them up after the first
   * failure.
   */
  #repeat(account: Account, calls: CallToEnd[]): void {
    const alone = calls.map((call) => ({ ...call, next: undefined }))
    const end = () => endCalls(this.#redis, account, { calls: alone })
    const repeating = retryUntil(end, REPEAT).catch((error) =>
      this.#log.warn({ err: error, account: account.accountId, calls: calls.length }, 'failed to release call limits'),
    )
    void this.#follow(repeating)
  }

  async #count(calls: UsedCall[], id: string): Promise<undefined[]> {
    const recordId = id || randomUUID()
    try {
      await retryUntil(() => recordUsage(this.#redis, calls, recordId), REPEAT)
    } catch (error) {
      this.#log.warn({ err: error, calls: calls.length }, 'failed to count usage')
    } finally {
      this.#refusals -= calls.filter(({ verdict }) => verdict.reach === 'refused').length
    }
    return []
  }
}

/** A promise whose rejection is ignored. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

function keyOf({ accountId, mode }: Account): string {
  return `${accountId} ${mode}`
}
