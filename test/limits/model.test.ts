import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { AccountLimits, acquireTogether } from '../../src/limits/account-limits.ts'
import { endCalls } from '../../src/limits/end-calls.ts'
import type { LimitState } from '../../src/limits/limit-state.ts'
import { monthOf } from '../../src/limits/month.ts'
import { createLog } from '../../src/log.ts'
import type { Refund } from '../../src/queue/verdict.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { takeThrottle } from '../../src/throttles/throttle.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { redisOfThisFile } from '../support/services.ts'

const LIMITS = { perMinute: 6, inFlight: 5, perMonth: 12 }
const NARROW = { id: 'narrow', perMinute: 4, inFlight: 3, perMonth: 5 }
/** If a plan has no limit for something, the model does not count it. */
const FEW_AT_ONCE = { id: 'few', perMinute: null, inFlight: 2, perMonth: null }
const LEASE_MS = 20_000
const START = Date.UTC(2027, 0, 31, 23, 58)

const step = fc.record({
  op: fc.oneof(
    { arbitrary: fc.constant('acquire' as const), weight: 6 },
    { arbitrary: fc.constant('batch' as const), weight: 2 },
    { arbitrary: fc.constantFrom('release', 'refund', 'read', 'lower'), weight: 4 },
  ),
  // Windows and leases end to the millisecond.
  pauseMs: fc.constantFrom(0, 0, 0, 1, 1_000, LEASE_MS - 1, LEASE_MS, 40_000, 59_999),
  pick: fc.nat(1_000),
  by: fc.constantFrom<Credential>('none', 'narrow', 'few at once'),
  refund: fc.constantFrom('nothing' as const, 'month' as const),
})

/**
 * Whose limits a call takes besides the limits of the account: nobody's, or the limits of one of
 * two credentials.
 */
type Credential = 'none' | 'narrow' | 'few at once'

interface ModelCall {
  id: string
  at: number
  by: Credential
  isAsync: boolean
  /** The calls of its batch that wait for a lease. */
  waiting: ModelCall[]
  hasEnded: boolean
}

/** A holder of limits, the account or a credential, in the words of the contract. */
class Holder {
  perMinute: number
  readonly perMonth: number
  readonly inFlightMax: number
  readonly minute = new Map<string, number>()
  readonly inFlight = new Map<string, number>()
  readonly months = new Map<string, number>()

  constructor({ perMinute, perMonth, inFlight }: Record<'perMinute' | 'perMonth' | 'inFlight', number | null>) {
    this.perMinute = perMinute ?? Infinity
    this.perMonth = perMonth ?? Infinity
    this.inFlightMax = inFlight ?? Infinity
  }

  advance(now: number): void {
    for (const [id, at] of this.minute) if (at <= now - 60_000) this.minute.delete(id)
    for (const [id, endsAt] of this.inFlight) if (endsAt <= now) this.inFlight.delete(id)
  }

  used(now: number): number {
    return this.months.get(monthOf(now).name) ?? 0
  }

  countMonth(at: number, units: number): void {
    this.months.set(monthOf(at).name, this.used(at) + units)
  }

  refusal(now: number): string | undefined {
    if (this.inFlight.size >= this.inFlightMax) return 'CONCURRENCY_LIMIT_EXCEEDED'
    if (this.minute.size >= this.perMinute) return 'RATE_LIMIT_EXCEEDED'
    return this.used(now) >= this.perMonth ? 'MONTHLY_QUOTA_EXCEEDED' : undefined
  }

  acquire({ id, at }: ModelCall, hasLease: boolean): void {
    this.minute.set(id, at)
    if (hasLease) this.inFlight.set(id, at + LEASE_MS)
    this.countMonth(at, 1)
  }

  /**
   * When so many units of the minute have come back, even if the limit was lowered and the count is
   * over it.
   */
  resetMs(now: number, wanted: number): number {
    const byAge = [...this.minute.values()].sort((a, b) => a - b)
    const at = byAge[Math.max(0, byAge.length + wanted - 1 - this.perMinute)]
    return at === undefined ? 0 : at + 60_000 - now
  }

  /** Until so many more calls fit into minute and month. A call in flight may end at any moment. */
  waitMs(now: number, wanted: number): number {
    return Math.max(
      this.minute.size + wanted > this.perMinute ? this.resetMs(now, wanted) : 0,
      this.used(now) + wanted > this.perMonth ? monthOf(now).endsAt - now : 0,
    )
  }
}

class Model {
  readonly account = new Holder(LIMITS)
  readonly credentials = { narrow: new Holder(NARROW), 'few at once': new Holder(FEW_AT_ONCE) }
  /** Asynchronous calls that were completed. */
  readonly ended = new Set<string>()

  /** In the order in which they refuse. */
  holders(by: Credential): Holder[] {
    return by === 'none' ? [this.account] : [this.credentials[by], this.account]
  }

  advance(now: number): void {
    for (const holder of [this.account, ...Object.values(this.credentials)]) holder.advance(now)
  }

  /** The Retry-After of a refusal: until none of the limits refuses so many calls. */
  retryAfterMs(now: number, by: Credential, wanted: number): number {
    return Math.max(1_000, ...this.holders(by).map((holder) => holder.waitMs(now, wanted)))
  }

  refuser(now: number, by: Credential): Holder | undefined {
    return this.holders(by).find((holder) => holder.refusal(now) !== undefined)
  }

  /**
   * How many calls of a batch get their units. Each call that fits beside the calls before it gets
   * them, if leases do not matter.
   */
  roomOf(now: number, by: Credential): number {
    const rooms = this.holders(by).map((holder) =>
      holder.inFlight.size >= holder.inFlightMax
        ? 0
        : Math.min(holder.perMinute - holder.minute.size, holder.perMonth - holder.used(now)),
    )
    return Math.max(0, Math.min(...rooms))
  }

  leasesLeft(by: Credential): number {
    return Math.min(...this.holders(by).map(({ inFlightMax, inFlight }) => inFlightMax - inFlight.size))
  }

  acquire(call: ModelCall, hasLease = true): void {
    for (const holder of this.holders(call.by)) holder.acquire(call, hasLease)
  }

  /** @returns whether the call had not ended before */
  end(call: ModelCall, { refund, next, now }: { refund: Refund; next: ModelCall | undefined; now: number }): boolean {
    const hadLease = this.account.inFlight.has(call.id)
    const hadUnit = refund === 'all' && this.account.minute.has(call.id)
    // Only an asynchronous call may outlive its lease.
    const isFirstEnd = call.isAsync ? !this.ended.has(call.id) : hadLease || hadUnit
    if (call.isAsync) this.ended.add(call.id)
    for (const holder of this.holders(call.by)) {
      holder.inFlight.delete(call.id)
      if (refund === 'all') holder.minute.delete(call.id)
      if (isFirstEnd && refund !== 'nothing') holder.countMonth(call.at, -1)
      if (hadLease && next) holder.inFlight.set(next.id, now + LEASE_MS)
    }
    return isFirstEnd
  }

  assertEquals(state: LimitState, now: number, by: Credential): void {
    const { minute, inFlight, month, credential } = state
    const { account } = this
    assert.deepEqual(
      [minute.used, inFlight, month?.used],
      [account.minute.size, account.inFlight.size, account.used(now)],
    )
    const own = by === 'none' ? undefined : this.credentials[by]
    assert.deepEqual(
      [credential?.minute?.used, credential?.inFlight?.used, credential?.month?.used],
      own
        ? [
            own.perMinute === Infinity ? undefined : own.minute.size,
            own.inFlightMax === Infinity ? undefined : own.inFlight.size,
            own.perMonth === Infinity ? undefined : own.used(now),
          ]
        : [undefined, undefined, undefined],
    )
  }
}

const { redis } = await redisOfThisFile()
const accountLimits = new AccountLimits(redis)
const log = createLog({ level: 'silent', pretty: false }, 'test')

let accounts = 0

const CODES: Record<string, string> = {
  'in-flight': 'CONCURRENCY_LIMIT_EXCEEDED',
  minute: 'RATE_LIMIT_EXCEEDED',
  month: 'MONTHLY_QUOTA_EXCEEDED',
}

it('plan limits are exact and nothing is given back twice in any history of calls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      accounts += 1
      const account = { accountId: `account-${accounts}`, mode: 'live', version: 'v' } as const
      await redis.set(accountKeys.version(account.accountId), 'v')
      const model = new Model()
      const calls: ModelCall[] = []
      let now = START
      const limitsOf = {
        none: () => undefined,
        narrow: () => ({ ...NARROW, perMinute: model.credentials.narrow.perMinute }),
        'few at once': () => FEW_AT_ONCE,
      }
      const request = (by: Credential) => ({
        subject: { ...account, allowance: limitsOf[by]() },
        tier: 'pro' as const,
        plan: { ...LIMITS, perMinute: model.account.perMinute },
        leaseMs: LEASE_MS,
        loadUsed: async () => 0,
        now: () => now,
      })
      const note = (call: Omit<ModelCall, 'at' | 'waiting' | 'hasEnded'>, hasLease = true): ModelCall => {
        const noted = { ...call, at: now, waiting: [], hasEnded: false }
        model.acquire(noted, hasLease)
        if (hasLease) calls.push(noted)
        return noted
      }
      /** Ends a call, twice. */
      const end = async (call: ModelCall, refund: Refund) => {
        const next = refund === 'all' ? undefined : call.waiting.shift()
        const { id, at, isAsync } = call
        const ending = {
          id,
          limitsAcquiredAt: at,
          refund,
          credentialId: limitsOf[call.by]()?.id,
          isAsync,
          next: next && { callId: next.id, leaseMs: LEASE_MS },
        }
        const hadLease = model.account.inFlight.has(id)
        const { ended } = await endCalls(redis, account, { calls: [ending, ending], now })
        assert.equal(ended, model.end(call, { refund, next, now }) ? 1 : 0)
        call.hasEnded = true
        if (!next) return
        // If the lease was over, the next call did not get it, and still waits.
        if (!hadLease) return void call.waiting.unshift(next)
        next.waiting = call.waiting.splice(0)
        calls.push(next)
      }
      for (const [index, { op, pauseMs, pick, refund, by }] of steps.entries()) {
        now += pauseMs
        // If a lease has run out, the script finds that when it looks at the limits. Until then its
        // call may still end.
        if (['acquire', 'batch', 'read'].includes(op)) model.advance(now)
        const call = calls[pick % Math.max(1, calls.length)]
        const isAsync = pick % 3 === 0
        if (op === 'acquire' && pick % 2 === 0) {
          const ids = Array.from({ length: 1 + (pick % 5) }, (_, nth) => `call-${index}-${nth}`)
          const [first = request(by), ...others] = ids.map((callId) => ({ ...request(by), callId }))
          const outcomes = await acquireTogether(redis, [first, ...others, request(by)])
          const [reading] = outcomes.splice(-1)
          // Each in turn, as if they had come one after the other.
          for (const [nth, outcome] of outcomes.entries()) {
            const refuser = model.refuser(now, by)
            const expected = refuser?.refusal(now)
            const isOfAccount = !outcome.decision.startsWith('credential-')
            const decision = outcome.decision.replace('credential-', '')
            assert.equal(decision === 'ok' ? undefined : CODES[decision], expected)
            if (refuser) assert.equal(isOfAccount, refuser === model.account)
            if (expected !== undefined) continue
            note({ id: ids[nth] ?? '', by, isAsync })
            model.assertEquals(outcome.state, now, by)
          }
          assert.ok(reading)
          model.assertEquals(reading.state, now, by)
        } else if (op === 'acquire') {
          const id = `call-${index}`
          const refuser = model.refuser(now, by)
          const expected = refuser?.refusal(now)
          const retryAfterMs = model.retryAfterMs(now, by, 1)
          try {
            const state = await accountLimits.acquire({ ...request(by), callId: id })
            assert.equal(expected, undefined)
            note({ id, by, isAsync })
            model.assertEquals(state, now, by)
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error
            assert.equal(error.code, expected)
            assert.equal(error.details.retryAfterMs, retryAfterMs)
          }
        } else if (op === 'batch') {
          const take = pick % 2 === 0 ? 'all' : 'fit'
          const callIds = Array.from({ length: 2 + (pick % 7) }, (_, nth) => `call-${index}-${nth}`)
          const room = model.roomOf(now, by)
          const granted = take === 'all' && room < callIds.length ? 0 : Math.min(room, callIds.length)
          const leases = Math.min(granted, model.leasesLeft(by))
          const retryAfterMs = model.retryAfterMs(now, by, take === 'all' ? callIds.length : 1)
          const batch = await accountLimits.acquireBatch({ ...request(by), callIds, take }).catch((error: unknown) => {
            assert.ok(error instanceof GatewayError, String(error))
            assert.equal(error.details.retryAfterMs, retryAfterMs)
            return undefined
          })
          assert.deepEqual([batch?.granted ?? 0, batch?.leases ?? 0], [granted, Math.max(0, leases)])
          if (!batch) continue
          const made = callIds.slice(0, granted).map((id, nth) => note({ id, by, isAsync: false }, nth < leases))
          const [first] = made
          first?.waiting.push(...made.slice(leases))
          model.assertEquals(batch.state, now, by)
        } else if (op === 'read') {
          const state = await accountLimits.read(request(by))
          model.assertEquals(state, now, by)
        } else if (op === 'lower') {
          const { account, credentials } = model
          if (pick % 2 === 0) account.perMinute = account.perMinute === 6 ? 3 : 6
          else credentials.narrow.perMinute = credentials.narrow.perMinute === 4 ? 2 : 4
        } else if (call && op === 'release') {
          await end(call, refund)
        } else if (call) {
          // The model gives up a call that waits for a lease before the call that has the lease. No
          // caller refunds a call that it ended.
          const unmade = call.waiting.pop() ?? (call.isAsync || call.hasEnded ? undefined : call)
          if (unmade) await end(unmade, 'all')
        }
      }
      model.advance(now)
      for (const by of ['none', 'narrow', 'few at once'] as const) {
        const state = await accountLimits.read(request(by))
        model.assertEquals(state, now, by)
      }
    }),
    propertyRuns(120),
  )
})

it('a throttle lets no more than its units through in any window', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(0, 1, 9_999, 10_000, 29_999, 30_000), {
        minLength: 5,
        maxLength: 40,
      }),
      async (pauses) => {
        accounts += 1
        const taken: number[] = []
        let now = START
        for (const pause of pauses) {
          now += pause
          const inWindow = taken.filter((at) => at > now - 60_000)
          const throttle = { name: 'login', subject: `s-${accounts}`, max: 4, code: 'LOGIN_THROTTLED' } as const
          const refusal = await takeThrottle({ redis, log, now: () => now }, throttle).then(
            () => undefined,
            (error: GatewayError) => error.details.retryAfterMs,
          )
          assert.equal(refusal, inWindow.length < 4 ? undefined : (inWindow[0] ?? 0) + 60_000 - now)
          if (refusal === undefined) taken.push(now)
        }
      },
    ),
    propertyRuns(40),
  )
  t.diagnostic(`${accounts} histories`)
})
