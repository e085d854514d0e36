import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { healthChangesKey, healthKey } from '../../src/health/health-keys.ts'
import { viewHealth } from '../../src/health/health-view.ts'
import { recordAttempt, recordGoodCalls, takeTrial } from '../../src/health/record.ts'
import {
  BANDS,
  bucketOf,
  clampToBand,
  decay,
  failShare,
  HALF_LIFE_MS,
  type HealthStatus,
  healthScore,
  LATENCY_BOUNDS_MS,
  latencyFactor,
  p95OfHistogram,
  scoreParts,
} from '../../src/health/score.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { type Services, startServices } from '../support/services.ts'

const count = () => fc.double({ min: 0, max: 1e6, noNaN: true })
const latency = () => fc.option(fc.double({ min: 0, max: 60_000, noNaN: true }), { nil: undefined })

describe('the health score', () => {
  it('is a whole number from 0 to 100 for any counts and latency', () => {
    fc.assert(
      fc.property(count(), count(), latency(), (ok, fail, p95) => {
        const score = healthScore(ok, fail, p95)
        assert.ok(Number.isInteger(score) && score >= 0 && score <= 100, String(score))
      }),
    )
  })

  it('never rises with a failure or a slower answer, and never falls with a success', () => {
    fc.assert(
      fc.property(count(), count(), latency(), fc.double({ min: 0, max: 1e4, noNaN: true }), (ok, fail, p95, more) => {
        const score = healthScore(ok, fail, p95)
        assert.ok(healthScore(ok, fail + more, p95) <= score)
        assert.ok(healthScore(ok + more, fail, p95) >= score)
        assert.ok(healthScore(ok, fail, (p95 ?? 0) + more) <= score)
      }),
    )
  })

  it('is round(80·max(0, 1−2f) + 20·L) with f = fail/(ok+fail+5) and L = clamp((10 s − p95)/9 s)', () => {
    const table: [number, number, number | undefined, number][] = [
      [0, 0, undefined, 100],
      [0, 1, undefined, 73],
      [5, 0, 10_000, 80],
      [5, 0, 5_500, 90],
      [5, 5, 1_000, 47],
      [0, 5, 10_000, 0],
      [10, 5, 1_000, 60],
    ]
    for (const [ok, fail, p95, score] of table) assert.equal(healthScore(ok, fail, p95), score, `${ok} ${fail} ${p95}`)
    assert.equal(failShare(10, 5), 0.25)
    assert.equal(latencyFactor(5_500), 0.5)
    assert.deepEqual(scoreParts(10, 5, 5_500), { availability: 40, latency: 10 })
  })

  it('forgets half in two minutes and everything in the end', () => {
    assert.equal(decay(8, HALF_LIFE_MS), 4)
    assert.equal(decay(8, 2 * HALF_LIFE_MS), 2)
    assert.equal(decay(8, -1_000), 8)
    fc.assert(
      fc.property(
        count(),
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        (value, a, b) => {
          assert.ok(Math.abs(decay(decay(value, a), b) - decay(value, a + b)) <= 1e-9 * value)
        },
      ),
    )
  })

  it('is shown within the band of its status, and bands do not overlap', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100 }),
        fc.constantFrom<HealthStatus>('Healthy', 'Degraded', 'Down'),
        (score, status) => {
          const shown = clampToBand(score, status)
          const owners = Object.entries(BANDS).filter(([, { min, max }]) => shown >= min && shown <= max)
          assert.deepEqual(
            owners.map(([name]) => name),
            [status],
          )
        },
      ),
    )
  })

  it('takes a p95 that lies in the bucket where the true one is', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9_999 }), { minLength: 1, maxLength: 200 }), (samples) => {
        const weights = LATENCY_BOUNDS_MS.map(() => 0)
        for (const sample of samples) weights[bucketOf(sample)] = (weights[bucketOf(sample)] ?? 0) + 1
        const sorted = samples.toSorted((a, b) => a - b)
        const exact = sorted[Math.ceil(samples.length * 0.95 - 1e-9) - 1] ?? 0
        assert.equal(bucketOf(p95OfHistogram(weights) ?? 0), bucketOf(exact))
      }),
    )
  })
})

/** The state as the contract words it, over `score.ts`: what the script in Redis must do. */
class Model {
  state: HealthStatus = 'Healthy'
  ok = 0
  fail = 0
  weights = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0)
  run = 0
  at = 0
  trialAt = 0
  pause = 0
  good = 0
  trial: string | undefined
  changes: string[] = []

  record(now: number, result: 'ok' | 'fail' | 'none', latencyMs: number, trial: string | undefined): void {
    const elapsed = this.at === 0 ? 0 : now - this.at
    this.ok = decay(this.ok, elapsed)
    this.fail = decay(this.fail, elapsed)
    this.weights = this.weights.map((weight) => decay(weight, elapsed))
    this.at = now
    if (result === 'ok') {
      this.ok += 1
      this.run = Math.max(this.run, 0) + 1
      this.weights[bucketOf(latencyMs)] = (this.weights[bucketOf(latencyMs)] ?? 0) + 1
    } else if (result === 'fail') {
      this.fail += 1
      this.run = Math.min(this.run, 0) - 1
    }
    const score = this.score()
    if (this.state === 'Down') this.#trial(now, result, trial)
    else if (result === 'fail' && (this.run <= -5 || score < 40)) this.#open(now)
    else if (this.state === 'Healthy' && score < 80) this.#go('Degraded')
    else if (this.state === 'Degraded' && score >= 80 && this.run >= 3) this.#go('Healthy')
  }

  score(): number {
    return healthScore(this.ok, this.fail, p95OfHistogram(this.weights))
  }

  #trial(now: number, result: 'ok' | 'fail' | 'none', trial: string | undefined): void {
    if (trial === undefined || trial !== this.trial) return
    this.trial = undefined
    this.trialAt = now
    if (result === 'ok') {
      this.good += 1
      if (this.good >= 3) this.#go('Degraded')
    } else if (result === 'fail') {
      this.good = 0
      this.pause = Math.min(this.pause * 2, 300_000)
      this.trialAt = now + this.pause
    }
  }

  #open(now: number): void {
    this.#go('Down')
    this.pause = 30_000
    this.trialAt = now + this.pause
    this.good = 0
    this.trial = undefined
  }

  #go(to: HealthStatus): void {
    this.changes.push(`${this.state}>${to}`)
    this.state = to
  }
}

describe('health in Redis', () => {
  let services: Services
  let redis: RedisConnection
  let names = 0
  const slug = () => {
    names += 1
    return `api-${names}`
  }
  const START = 1_800_000_000_000

  before(async () => {
    services = await startServices()
    redis = openRedis([services.redisUrl], 'waiter', createLog({ level: 'silent', pretty: false }, 'test'))
  })
  after(async () => {
    await closeRedis(redis)
    await services.stop()
  })

  const fails = async (name: string, times: number, now: number) => {
    for (let index = 0; index < times; index += 1)
      await recordAttempt(redis, name, { result: 'fail', code: 'UPSTREAM_ERROR', latencyMs: 5, source: 'call' }, now)
  }
  const view = async (name: string, now: number) => viewHealth(await redis.hgetall(healthKey(name)), now)

  it('does what the pure functions say, attempt by attempt, for any history', async () => {
    const step = fc.record({
      pauseMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 400_000 })),
      result: fc.constantFrom('ok', 'ok', 'fail', 'fail', 'none'),
      latencyMs: fc.integer({ min: 0, max: 15_000 }),
      asksForTrial: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
        const name = slug()
        const model = new Model()
        let now = START
        for (const [index, { pauseMs, result, latencyMs, asksForTrial }] of steps.entries()) {
          now += pauseMs
          let trial: string | undefined
          if (asksForTrial) {
            const answer = await takeTrial(redis, name, `t${index}`, { now: now })
            const expected = model.state !== 'Down' ? 'closed' : model.trialAt > now ? 'wait' : 'trial'
            assert.equal(answer.kind, expected)
            if (answer.kind === 'trial') {
              trial = `t${index}`
              model.trial = trial
            }
          }
          const typed = result as 'ok' | 'fail' | 'none'
          const seen = await recordAttempt(redis, name, { result: typed, latencyMs, source: 'call', trial }, now)
          model.record(now, typed, latencyMs, trial)
          assert.equal(seen.state, model.state)
          assert.ok(Math.abs(seen.score - model.score()) <= 1, `${seen.score} for ${model.score()}`)
        }
        const shown = await view(name, now)
        assert.equal(shown.status, model.state)
        assert.ok(Math.abs(shown.score - clampToBand(model.score(), model.state)) <= 1)
        const written = await redis.xrange(healthChangesKey(name), '-', '+')
        const pairs = written.map(([, fields]) => `${fields[3]}>${fields[5]}`)
        assert.deepEqual(pairs, model.changes)
      }),
      { numRuns: 120 },
    )
  })

  it('counts several good calls in one step as it does one by one', async () => {
    const [together, apart] = [slug(), slug()]
    const latenciesMs = [3, 20, 700, 9_000, 60, 60, 12_000]
    await recordGoodCalls(redis, together, latenciesMs, START)
    for (const latencyMs of latenciesMs)
      await recordAttempt(redis, apart, { result: 'ok', latencyMs, source: 'call' }, START)
    assert.deepEqual(await redis.hgetall(healthKey(together)), await redis.hgetall(healthKey(apart)))
  })

  it('opens the breaker at five failures in a row, and not at four', async () => {
    const name = slug()
    for (let index = 0; index < 40; index += 1)
      await recordAttempt(redis, name, { result: 'ok', latencyMs: 20, source: 'call' }, START)
    await fails(name, 4, START)
    assert.equal((await view(name, START)).status, 'Healthy')
    await fails(name, 1, START)
    const { status, score, unclampedScore, trialAt } = await view(name, START)
    assert.deepEqual([status, score, trialAt], ['Down', 39, START + 30_000])
    assert.equal(unclampedScore, 84)
  })

  it('gives the trial of an open breaker to one asker, again when that one is lost', async () => {
    const name = slug()
    await fails(name, 5, START)
    assert.deepEqual(await takeTrial(redis, name, 'early', { now: START + 29_000 }), { kind: 'wait', waitMs: 1_000 })
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((token) => takeTrial(redis, name, token, { now: START + 30_000 })),
    )
    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['trial', 'wait', 'wait'])
    assert.equal((await takeTrial(redis, name, 'd', { now: START + 50_001 })).kind, 'trial')
  })

  it('waits 30, 60, 120, 240, 300 and 300 seconds between trials that fail', async () => {
    const name = slug()
    await fails(name, 5, START)
    let now = START
    const pauses: number[] = []
    for (let index = 0; index < 6; index += 1) {
      const { trialAt = 0 } = await view(name, now)
      pauses.push((trialAt - now) / 1_000)
      now = trialAt
      assert.equal((await takeTrial(redis, name, `t${index}`, { now: now })).kind, 'trial')
      await recordAttempt(redis, name, { result: 'fail', latencyMs: 5, source: 'call', trial: `t${index}` }, now)
    }
    assert.deepEqual(pauses, [30, 60, 120, 240, 300, 300])
  })

  it('counts a change once when many workers see it at once', async () => {
    const name = slug()
    await Promise.all(Array.from({ length: 50 }, () => fails(name, 1, START)))
    const changes = await redis.xrange(healthChangesKey(name), '-', '+')
    assert.deepEqual(
      changes.map(([, fields]) => fields[5]),
      ['Degraded', 'Down'],
    )
  })
})
