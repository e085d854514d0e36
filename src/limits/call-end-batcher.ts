import { randomUUID } from 'node:crypto'
import { Batcher } from '../async/batcher.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import { refundOf, type Verdict } from '../queue/verdict.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { LimitSubject } from './account-limits.ts'
import { type CallToEnd, type EndStep, endCalls, NOTHING_ENDED, readAcquiredAt } from './end-calls.ts'
import { countedCredential } from './limit-state.ts'
import { recordUsage, type UsedCall } from './usage-ledger.ts'

/**
 * How long usage is gathered before it is written, milliseconds: it may be shown a second or two
 * late.
 */
const USAGE_GATHER_MS = 200

/**
 * Ends and usage that Redis does not take within this time are lost, and logged. Redis knows the
 * units of a minute so long. Milliseconds.
 */
const REPEAT = { ...RESTART_RETRY, forMs: 60_000, mayRepeat: () => true }

const COMPENSATE_EVERY_MS = 1_500
const COMPENSATE_TRIES = 4

/**
 * Acquisitions that are compensated at one time; beyond it, leases expire and units of the month
 * stay spent.
 */
const UNACKED_MAX = 2_000

/** Fails open: beyond it refusals are not counted, so that a flood cannot fill the memory. */
const REFUSALS_MAX = 10_000

type Account = Pick<LimitSubject, 'accountId' | 'mode'>

/** A call that ends. Without `id` the call took no limits, because it was refused before that. */
export interface EndingCall extends Pick<CallJob, 'accountId' | 'keyId' | 'credentialId' | 'mode' | 'slug'> {
  id?: string
  isAsync?: boolean
  /** Redis' clock, milliseconds: it decides the day and the month for which the call counts. */
  limitsAcquiredAt: number
}

/** The call of the same batch that gets the lease of a call that ends, and for how long. */
export interface NextCall {
  callId: string
  leaseMs: number
}

/** Calls that were acquired together. `at`: about when, Redis' clock, milliseconds. */
export interface Acquisition {
  account: LimitSubject
  callIds: string[]
  at: number
}

interface LimitEnd {
  account: Account
  call: CallToEnd
  leaseMs: number
}

/**
 * Ends the calls of an API node for their accounts: releases their limits, and counts them as
 * usage, in batches.
 */
export class CallEndBatcher {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #ends = new Batcher<LimitEnd, EndStep>(this.#end.bind(this))
  /** By the id under which a call is counted once; calls without an id are counted together. */
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
   * Ends a call: ends its lease, gives back what the verdict gives back, and counts the call.
   * Nobody has to wait for it.
   * @param verdict a promise if it is not known yet; it must not reject
   * @returns when Redis has done this. Rejects if the first try fails: the batcher then repeats the
   *   end for a minute in the background, and `next` does not get the lease
   */
  end(call: EndingCall, verdict: Verdict | Promise<Verdict>, next?: NextCall): Promise<EndStep> {
    if (verdict instanceof Promise) return this.#follow(verdict.then((known) => this.end(call, known, next)))
    this.#countEnd(call, verdict)
    const { id, accountId, mode, credentialId, limitsAcquiredAt, isAsync } = call
    if (id === undefined) return NOTHING_ENDED
    const ending = { id, limitsAcquiredAt, credentialId, isAsync, refund: refundOf(verdict), next: next?.callId }
    const account = { accountId, mode }
    return handled(this.#ends.add(keyOf(call), { account, call: ending, leaseMs: next?.leaseMs ?? 0 }))
  }

  /** Ends an account's pending calls now: its next call never finds the last call in flight. */
  flush(account: Account): void {
    this.#ends.flush(keyOf(account))
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
      // A new connection may overtake what the old connection left in Redis' buffers: an absent
      // call may still come.
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
      const limitsAcquiredAt = (await readAcquiredAt(this.#redis, account, first)) ?? notedAt
      const credentialId = countedCredential(account)
      const calls = callIds.map((id) => ({ id, limitsAcquiredAt, credentialId, refund: 'all' as const }))
      return (await endCalls(this.#redis, account, { calls })).ended > 0
    } catch (error) {
      this.#log.debug({ err: error, callId: first }, 'failed to compensate an unacknowledged acquisition')
      return false
    }
  }

  async #end(ends: LimitEnd[]): Promise<EndStep[]> {
    const [first] = ends
    if (!first) return []
    const { account } = first
    const calls = ends.map(({ call }) => call)
    try {
      const leaseMs = Math.max(...ends.map((end) => end.leaseMs))
      const step = await endCalls(this.#redis, account, { calls, leaseMs })
      return ends.map(() => step)
    } catch (error) {
      this.#repeat(account, calls)
      throw error
    }
  }

  /**
   * Ends the calls again and again in the background, which is harmless if they had ended. The next
   * calls of a batch do not get the leases, because the batch gave them up when the first try
   * failed.
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

/** A promise whose rejection nobody has to handle. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

function keyOf({ accountId, mode }: Account): string {
  return `${accountId} ${mode}`
}
