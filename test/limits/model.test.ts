import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { AccountLimits, acquireTogether, type LimitState, readLimits, STALE } from '../../src/limits/account-limits.ts'
import { monthOf } from '../../src/limits/month.ts'
import { refundCall, releaseLimits } from '../../src/limits/release-limits.ts'
import { takeThrottle } from '../../src/limits/throttle.ts'
import { createLog } from '../../src/log.ts'
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
    { arbitrary: fc.constantFrom('release', 'refund', 'read', 'lower'), weight: 3 },
  ),
  // Windows and leases end to the millisecond.
  pauseMs: fc.constantFrom(0, 0, 0, 1, 1_000, LEASE_MS - 1, LEASE_MS, 40_000, 59_999),
  pick: fc.nat(1_000),
  isByApplication: fc.boolean(),
  status: fc.constantFrom(200, 404, 502, 503),
})

/** An account's units as the contract words them. */
class Model {
  perMinute = LIMITS.perMinute
  readonly minute = new Map<string, number>()
  /** Asynchronous calls that were completed. */
  readonly ended = new Set<string>()
  readonly inFlight = new Map<string, { endsAt: number; month: string }>()
  readonly months = new Map<string, number>()
  /** Of these, the calls of the application. */
  readonly ofApplication = new Map<string, number>()

  advance(now: number): void {
    for (const [id, at] of this.minute) if (at <= now - 60_000) this.minute.delete(id)
    for (const [id, { endsAt }] of this.inFlight) if (endsAt <= now) this.inFlight.delete(id)
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

  acquire(id: string, now: number, isByApplication: boolean): void {
    const month = monthOf(now).name
    this.minute.set(id, now)
    this.inFlight.set(id, { endsAt: now + LEASE_MS, month })
    this.countMonth(month, isByApplication, 1)
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
      const calls: { id: string; at: number; isByApplication: boolean; isAsync: boolean }[] = []
      let now = START
      const request = (isByApplication: boolean) => ({
        subject: isByApplication ? application : account,
        tier: 'pro' as const,
        plan: { ...LIMITS, perMinute: model.perMinute },
        leaseMs: LEASE_MS,
        loadMonthUsed: async () => 0,
        now: () => now,
      })
      for (const [index, { op, pauseMs, pick, status, isByApplication }] of steps.entries()) {
        now += pauseMs
        // A lease that ran out is found gone when the limits are looked at; until then its call may still end.
        if (op === 'acquire' || op === 'read') model.advance(now)
        const call = calls[pick % Math.max(1, calls.length)]
        if (op === 'acquire' && pick % 2 === 0) {
          const ids = Array.from({ length: 1 + (pick % 5) }, (_, nth) => `call-${index}-${nth}`)
          const outcomes = await acquireTogether(
            redis,
            ids.map((callId) => ({ ...request(isByApplication), callId })),
          )
          // Each in turn, as if they had come one after the other.
          for (const [nth, outcome] of outcomes.entries()) {
            assert.ok(outcome !== STALE)
            const expected = model.refusal(now, isByApplication)
            assert.equal(outcome.decision === 'ok' ? undefined : CODES[outcome.decision], expected)
            const id = ids[nth] ?? ''
            if (expected !== undefined) continue
            model.acquire(id, now, isByApplication)
            calls.push({ id, at: now, isByApplication, isAsync: pick % 3 === 0 })
            model.assertEquals(outcome.state, now)
          }
        } else if (op === 'acquire') {
          const id = `call-${index}`
          const expected = model.refusal(now, isByApplication)
          const resetMs = model.resetMs(now)
          try {
            const state = await accountLimits.acquire({ ...request(isByApplication), callId: id })
            assert.equal(expected, undefined)
            assert.ok(state !== STALE)
            model.acquire(id, now, isByApplication)
            calls.push({ id, at: now, isByApplication, isAsync: pick % 3 === 0 })
            model.assertEquals(state, now)
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error
            assert.equal(error.code, expected)
            if (expected === 'RATE_LIMIT_EXCEEDED') assert.equal(error.details.retryAfterMs, resetMs)
          }
        } else if (op === 'read') {
          const state = await readLimits(redis, request(isByApplication))
          assert.ok(state)
          model.assertEquals(state, now)
        } else if (op === 'lower') {
          model.perMinute = model.perMinute === 6 ? 3 : 6
        } else if (call && (op === 'release' || !call.isAsync)) {
          const lease = model.inFlight.get(call.id)
          const month = monthOf(call.at).name
          if (op === 'release') {
            const keyId = call.isByApplication ? APPLICATION.id : 'key'
            const ended = [{ callId: call.id, usageStatus: status, keyId, isAsync: call.isAsync }]
            const released = await releaseLimits(redis, account, { month, ended: [...ended, ...ended] })
            // Only an asynchronous call may outlive its lease.
            const isFirstEnd = call.isAsync ? !model.ended.has(call.id) : lease !== undefined
            assert.equal(released, isFirstEnd ? 1 : 0)
            if (isFirstEnd && status >= 500) model.countMonth(month, call.isByApplication, -1)
            model.ended.add(call.id)
          } else {
            const subject = call.isByApplication ? application : account
            assert.equal(await refundCall(redis, subject, { callId: call.id, at: call.at }), lease !== undefined)
            if (lease) {
              model.minute.delete(call.id)
              model.countMonth(month, call.isByApplication, -1)
            }
          }
          model.inFlight.delete(call.id)
        }
      }
      model.advance(now)
      for (const isByApplication of [false, true]) {
        const state = await readLimits(redis, request(isByApplication))
        assert.ok(state)
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
