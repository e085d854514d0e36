import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { AccountLimits, acquireTogether, type LimitState, STALE } from '../../src/limits/account-limits.ts'
import { endCalls } from '../../src/limits/end-calls.ts'
import { monthOf } from '../../src/limits/month.ts'
import { takeThrottle } from '../../src/limits/throttle.ts'
import { createLog } from '../../src/log.ts'
import type { Refund } from '../../src/queue/verdict.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { redisOfThisFile } from '../support/services.ts'

const LIMITS = { perMinute: 6, inFlight: 5, perMonth: 12 }
const APPLICATION = { id: 'application', perMonth: 5 }
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
  isByApplication: fc.boolean(),
  refund: fc.constantFrom('nothing' as const, 'month' as const),
})

interface ModelCall {
  id: string
  at: number
  isByApplication: boolean
  isAsync: boolean
  /** The calls of its batch that wait for a lease. */
  waiting: ModelCall[]
  hasEnded: boolean
}

/** An account's units as the contract words them. */
class Model {
  perMinute = LIMITS.perMinute
  readonly minute = new Map<string, number>()
  /** Asynchronous calls that were completed. */
  readonly ended = new Set<string>()
  readonly inFlight = new Map<string, number>()
  readonly months = new Map<string, number>()
  /** Of these, the calls of the application. */
  readonly ofApplication = new Map<string, number>()

  advance(now: number): void {
    for (const [id, at] of this.minute) if (at <= now - 60_000) this.minute.delete(id)
    for (const [id, endsAt] of this.inFlight) if (endsAt <= now) this.inFlight.delete(id)
  }

  refusal(now: number, isByApplication: boolean): string | undefined {
    const ofApplication = this.ofApplication.get(monthOf(now).name) ?? 0
    if (isByApplication && ofApplication >= APPLICATION.perMonth) return 'MONTHLY_QUOTA_EXCEEDED'
    if (this.inFlight.size >= LIMITS.inFlight) return 'CONCURRENCY_LIMIT_EXCEEDED'
    if (this.minute.size >= this.perMinute) return 'RATE_LIMIT_EXCEEDED'
    if (this.used(monthOf(now).name) >= LIMITS.perMonth) return 'MONTHLY_QUOTA_EXCEEDED'
    return undefined
  }

  used(month: string): number {
    return this.months.get(month) ?? 0
  }

  acquire({ id, at, isByApplication }: ModelCall, hasLease = true): void {
    this.minute.set(id, at)
    if (hasLease) this.inFlight.set(id, at + LEASE_MS)
    this.countMonth(monthOf(at).name, isByApplication, 1)
  }

  /** How many calls of a batch get their units: each call that fits beside those before it, as far as leases do not matter. */
  roomOf(now: number, isByApplication: boolean): number {
    if (this.inFlight.size >= LIMITS.inFlight) return 0
    const { name } = monthOf(now)
    const ofApplication = isByApplication ? APPLICATION.perMonth - (this.ofApplication.get(name) ?? 0) : Infinity
    return Math.max(0, Math.min(this.perMinute - this.minute.size, LIMITS.perMonth - this.used(name), ofApplication))
  }

  /** @returns whether the call had not ended before */
  end(call: ModelCall, { refund, next, now }: { refund: Refund; next: ModelCall | undefined; now: number }): boolean {
    const hadLease = this.inFlight.delete(call.id)
    const hadUnit = refund === 'all' && this.minute.delete(call.id)
    // Only an asynchronous call may outlive its lease.
    const isFirstEnd = call.isAsync ? !this.ended.has(call.id) : hadLease || hadUnit
    if (call.isAsync) this.ended.add(call.id)
    if (isFirstEnd && refund !== 'nothing') this.countMonth(monthOf(call.at).name, call.isByApplication, -1)
    if (hadLease && next) this.inFlight.set(next.id, now + LEASE_MS)
    return isFirstEnd
  }

  countMonth(month: string, isByApplication: boolean, units: number): void {
    this.months.set(month, this.used(month) + units)
    if (isByApplication) this.ofApplication.set(month, (this.ofApplication.get(month) ?? 0) + units)
  }

  /** When a unit of the minute comes back, over a limit that may have been lowered. */
  resetMs(now: number): number {
    const byAge = [...this.minute.values()].sort((a, b) => a - b)
    const at = byAge[Math.max(0, byAge.length - this.perMinute)]
    return at === undefined ? 0 : at + 60_000 - now
  }

  assertEquals(state: LimitState, now: number): void {
    const { minute, inFlight, month, application } = state
    const { name } = monthOf(now)
    assert.deepEqual(
      [minute.used, inFlight, month?.used, application?.used ?? 'absent'],
      [
        this.minute.size,
        this.inFlight.size,
        this.used(name),
        application ? (this.ofApplication.get(name) ?? 0) : 'absent',
      ],
    )
  }
}

const { redis } = await redisOfThisFile()
const accountLimits = new AccountLimits(redis)
const log = createLog({ level: 'silent', pretty: false }, 'test')

let accounts = 0

const CODES: Record<string, string> = {
  inFlight: 'CONCURRENCY_LIMIT_EXCEEDED',
  minute: 'RATE_LIMIT_EXCEEDED',
  'month-used': 'MONTHLY_QUOTA_EXCEEDED',
  'application-used': 'MONTHLY_QUOTA_EXCEEDED',
}

it('plan limits are exact and nothing is given back twice in any history of calls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      accounts += 1
      const account = { accountId: `account-${accounts}`, mode: 'live', version: 'v' } as const
      const application = { ...account, connection: APPLICATION }
      await redis.set(accountKeys.version(account.accountId), 'v')
      const model = new Model()
      const calls: ModelCall[] = []
      let now = START
      const request = (isByApplication: boolean) => ({
        subject: isByApplication ? application : account,
        tier: 'pro' as const,
        plan: { ...LIMITS, perMinute: model.perMinute },
        leaseMs: LEASE_MS,
        loadMonthUsed: async () => 0,
        now: () => now,
      })
      const note = (call: Omit<ModelCall, 'at' | 'waiting' | 'hasEnded'>, hasLease = true): ModelCall => {
        const noted = { ...call, at: now, waiting: [], hasEnded: false }
        model.acquire(noted, hasLease)
        if (hasLease) calls.push(noted)
        return noted
      }
      /** Ends a call, told twice of it. */
      const end = async (call: ModelCall, refund: Refund) => {
        const next = refund === 'all' ? undefined : call.waiting.shift()
        const { id, at, isAsync } = call
        const keyId = call.isByApplication ? APPLICATION.id : 'key'
        const ending = { callId: id, at, refund, keyId, isAsync, next: next?.id }
        const hadLease = model.inFlight.has(id)
        const { ended } = await endCalls(redis, account, { calls: [ending, ending], leaseMs: LEASE_MS, now })
        assert.equal(ended, model.end(call, { refund, next, now }) ? 1 : 0)
        call.hasEnded = true
        if (!next) return
        // If the lease was over, the next call got none, and waits on.
        if (!hadLease) return void call.waiting.unshift(next)
        next.waiting = call.waiting.splice(0)
        calls.push(next)
      }
      for (const [index, { op, pauseMs, pick, refund, isByApplication }] of steps.entries()) {
        now += pauseMs
        // A lease that ran out is found gone when the limits are looked at; until then its call may still end.
        if (['acquire', 'batch', 'read'].includes(op)) model.advance(now)
        const call = calls[pick % Math.max(1, calls.length)]
        const isAsync = pick % 3 === 0
        if (op === 'acquire' && pick % 2 === 0) {
          const ids = Array.from({ length: 1 + (pick % 5) }, (_, nth) => `call-${index}-${nth}`)
          const requests = ids.map((callId) => ({ ...request(isByApplication), callId }))
          const outcomes = await acquireTogether(redis, [...requests, request(isByApplication)])
          const [reading] = outcomes.splice(-1)
          // Each in turn, as if they had come one after the other.
          for (const [nth, outcome] of outcomes.entries()) {
            assert.ok(outcome !== STALE)
            const expected = model.refusal(now, isByApplication)
            assert.equal(outcome.decision === 'ok' ? undefined : CODES[outcome.decision], expected)
            if (expected !== undefined) continue
            note({ id: ids[nth] ?? '', isByApplication, isAsync })
            model.assertEquals(outcome.state, now)
          }
          assert.ok(reading && reading !== STALE)
          model.assertEquals(reading.state, now)
        } else if (op === 'acquire') {
          const id = `call-${index}`
          const expected = model.refusal(now, isByApplication)
          const resetMs = model.resetMs(now)
          try {
            const state = await accountLimits.acquire({ ...request(isByApplication), callId: id })
            assert.equal(expected, undefined)
            assert.ok(state !== STALE)
            note({ id, isByApplication, isAsync })
            model.assertEquals(state, now)
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error
            assert.equal(error.code, expected)
            if (expected === 'RATE_LIMIT_EXCEEDED') assert.equal(error.details.retryAfterMs, resetMs)
          }
        } else if (op === 'batch') {
          const take = pick % 2 === 0 ? 'all' : 'fit'
          const callIds = Array.from({ length: 2 + (pick % 7) }, (_, nth) => `call-${index}-${nth}`)
          const room = model.roomOf(now, isByApplication)
          const granted = take === 'all' && room < callIds.length ? 0 : Math.min(room, callIds.length)
          const leases = Math.min(granted, LIMITS.inFlight - model.inFlight.size)
          const batch = await accountLimits
            .acquireBatch({ ...request(isByApplication), callIds, take })
            .catch((error: unknown) => (error instanceof GatewayError ? undefined : assert.fail(String(error))))
          assert.ok(batch !== STALE)
          assert.deepEqual([batch?.granted ?? 0, batch?.leases ?? 0], [granted, Math.max(0, leases)])
          if (!batch) continue
          const made = callIds
            .slice(0, granted)
            .map((id, nth) => note({ id, isByApplication, isAsync: false }, nth < leases))
          const [first] = made
          first?.waiting.push(...made.slice(leases))
          model.assertEquals(batch.state, now)
        } else if (op === 'read') {
          const state = await accountLimits.read(request(isByApplication))
          assert.ok(state !== STALE)
          model.assertEquals(state, now)
        } else if (op === 'lower') {
          model.perMinute = model.perMinute === 6 ? 3 : 6
        } else if (call && op === 'release') {
          await end(call, refund)
        } else if (call) {
          // A call that waits for a lease is given up before the call that has it. No caller refunds a call that it ended.
          const unmade = call.waiting.pop() ?? (call.isAsync || call.hasEnded ? undefined : call)
          if (unmade) await end(unmade, 'all')
        }
      }
      model.advance(now)
      for (const isByApplication of [false, true]) {
        const state = await accountLimits.read(request(isByApplication))
        assert.ok(state !== STALE)
        model.assertEquals(state, now)
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
