import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { HealthCache } from '../../src/health/health-cache.ts'
import {
  CHANCE_TO_OPEN,
  CONFIRM_EVERY_MS,
  CONFIRM_SCORE_EVERY_MS,
  HALF_OPEN_LEASE_MS,
  QUIET_MS_TO_OPEN,
  recheckPauseMs,
  VOTE_MS,
  VOTES_TO_BE_DOWN,
} from '../../src/health/health-thresholds.ts'
import { halfOpenWaitMs, viewHealth } from '../../src/health/health-view.ts'
import { type AttemptRecord, acquireHalfOpenSlot, recordAttempt, recordSuccesses } from '../../src/health/record.ts'
import {
  BANDS,
  clampToBand,
  decayed,
  failShare,
  HALF_LIFE_MS,
  type HealthStatus,
  healthScore,
  LATENCY_BOUNDS_MS,
  latencyFactor,
  PRIOR_ATTEMPTS,
  quantileOfHistogram,
  scoreParts,
} from '../../src/health/score.ts'
import { createLog } from '../../src/log.ts'
import { voterOf } from '../../src/queue/wait-queue-entry.ts'
import { RedisClock } from '../../src/redis/clock.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { publishedDuring } from '../support/published.ts'
import { type Services, startServices } from '../support/services.ts'

const count = () => fc.double({ min: 0, max: 1e6, noNaN: true })
const latency = () => fc.option(fc.double({ min: 0, max: 60_000, noNaN: true }), { nil: undefined })

/** Bucket of a latency in a histogram over `LATENCY_BOUNDS_MS`. */
function latencyBucketOf(latencyMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((bound) => latencyMs <= bound)
  return index < 0 ? LATENCY_BOUNDS_MS.length : index
}

describe('the health score', () => {
  it('the health score is a whole number from 0 to 100 for any counts and latency', () => {
    fc.assert(
      fc.property(count(), count(), latency(), (ok, fail, p95) => {
        const score = healthScore(ok, fail, p95)
        assert.ok(Number.isInteger(score) && score >= 0 && score <= 100, String(score))
      }),
    )
  })

  it('the health score never rises with a failure or a slower answer, and never falls with a success', () => {
    fc.assert(
      fc.property(count(), count(), latency(), fc.double({ min: 0, max: 1e4, noNaN: true }), (ok, fail, p95, more) => {
        const score = healthScore(ok, fail, p95)
        assert.ok(healthScore(ok, fail + more, p95) <= score)
        assert.ok(healthScore(ok + more, fail, p95) >= score)
        assert.ok(healthScore(ok, fail, (p95 ?? 0) + more) <= score)
      }),
    )
  })

  it('the health score is round(80·max(0, 1−2f) + 20·L) with f = fail/(ok+fail+5) and L = clamp((10 s − p95)/9 s)', () => {
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

  it('the health score forgets half in two minutes and everything in the end', () => {
    assert.equal(decayed(8, HALF_LIFE_MS), 4)
    assert.equal(decayed(8, 2 * HALF_LIFE_MS), 2)
    assert.equal(decayed(8, -1_000), 8)
    fc.assert(
      fc.property(
        count(),
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        (value, a, b) => {
          assert.ok(Math.abs(decayed(decayed(value, a), b) - decayed(value, a + b)) <= 1e-9 * value)
        },
      ),
    )
  })

  it('the health score is shown within the band of its status, and bands do not overlap', () => {
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

  it('the health score takes a p95 that lies in the bucket of the true p95', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9_999 }), { minLength: 1, maxLength: 200 }), (samples) => {
        const weights = LATENCY_BOUNDS_MS.map(() => 0)
        for (const sample of samples) weights[latencyBucketOf(sample)] = (weights[latencyBucketOf(sample)] ?? 0) + 1
        const sorted = samples.toSorted((a, b) => a - b)
        const exact = sorted[Math.ceil(samples.length * 0.95 - 1e-9) - 1] ?? 0
        assert.equal(latencyBucketOf(quantileOfHistogram(weights, 0.95) ?? 0), latencyBucketOf(exact))
      }),
    )
  })
})

const RESULTS = ['ok', 'fail', 'fail', 'fail', 'fail', 'hanging', 'late', 'endpoint-fail', 'none'] as const
const VOTERS = ['a', 'b', 'c', 'd', 'e'] as const

/**
 * The state by the rules of the contract, with `score.ts`. The script in Redis must do the same.
 */
class Model {
  state: HealthStatus = 'Healthy'
  isOpen = false
  ok = 0
  fail = 0
  voters = new Map<string, number>()
  weights = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0)
  run = 0
  okBefore = 0
  failBefore = 0
  okAt = 0
  at = 0
  isProbed = false
  confirmAt = 0
  needsProbe = false
  halfOpenAt = 0
  pause = 0
  good = 0
  slot: string | undefined
  changes: string[] = []
  justClosed = false

  record(now: number, attempt: AttemptRecord): void {
    const { result, latencyMs, source, isPlain, voter = '', slot, isRepeat } = attempt
    const elapsed = this.at === 0 ? 0 : now - this.at
    for (const name of ['ok', 'fail', 'okBefore', 'failBefore'] as const) this[name] = decayed(this[name], elapsed)
    this.weights = this.weights.map((weight) => decayed(weight, elapsed))
    this.at = now
    this.needsProbe = false
    if ((result === 'ok' || result === 'endpoint-fail') && this.run < 0) {
      this.failBefore -= this.run
      this.run = 0
    }
    if (result === 'endpoint-fail') this.run = 0
    if (result === 'ok') {
      this.ok += 1
      this.okBefore += 1
      this.run += 1
      this.weights[latencyBucketOf(latencyMs)] = (this.weights[latencyBucketOf(latencyMs)] ?? 0) + 1
    }
    const isFailure = (result === 'fail' || result === 'late' || result === 'endpoint-fail') && isPlain
    const isInRow = result === 'fail' || result === 'hanging'
    if (isFailure && !isRepeat) this.fail += 1
    if ((isFailure || isInRow) && isPlain && source === 'call') this.voters.set(voter, now)
    if (isInRow) this.run = Math.min(this.run, 0) - 1
    if (this.run >= 0) this.isProbed = false
    if (isInRow && source === 'probe') this.isProbed = true
    if (this.isOpen) this.#tryAgain(now, result, slot)
    else if (isInRow && -this.run >= this.#needed() && now - this.okAt >= QUIET_MS_TO_OPEN) this.#decide(now)
    if (result === 'ok') this.okAt = now
    if (this.isOpen) return
    if (this.justClosed) {
      this.justClosed = false
      return
    }
    const score = this.score()
    const isBelowDown = isFailure && score < 40 && this.state !== 'Down'
    const isDoubtful = isBelowDown && source !== 'probe' && this.#votes(now) < VOTES_TO_BE_DOWN
    if (isDoubtful && now - this.confirmAt >= CONFIRM_SCORE_EVERY_MS) {
      this.confirmAt = now
      this.needsProbe = true
    }
    if (isBelowDown && !isDoubtful) this.#go('Down')
    else if (this.state === 'Healthy' && score < 80) this.#go('Degraded')
    else if (this.state === 'Down' && score >= 40 && this.run >= 3) this.#go('Degraded')
    else if (this.state === 'Degraded' && score >= 80 && this.run >= 3) this.#go('Healthy')
  }

  /** Callers whose latest failure still is a vote. */
  #votes(now: number, since = 0): number {
    return [...this.voters.values()].filter((at) => now - at < VOTE_MS && at >= since).length
  }

  score(): number {
    return healthScore(this.ok, this.fail, quantileOfHistogram(this.weights, 0.95))
  }

  #needed(): number {
    const share = this.failBefore / (this.okBefore + this.failBefore + PRIOR_ATTEMPTS)
    if (share === 0) return 5
    return Math.max(5, Math.min(30, Math.ceil(Math.log(CHANCE_TO_OPEN) / Math.log(share))))
  }

  #decide(now: number): void {
    if (this.isProbed || this.#votes(now, this.okAt) >= 5) {
      this.isOpen = true
      this.#go('Down')
      this.pause = 30_000
      this.halfOpenAt = now + this.pause
      this.good = 0
      this.slot = undefined
    } else if (now - this.confirmAt >= CONFIRM_EVERY_MS) {
      this.confirmAt = now
      this.needsProbe = true
    }
  }

  #tryAgain(now: number, result: AttemptRecord['result'], slot: string | undefined): void {
    if (slot === undefined || slot !== this.slot || result === 'hanging') return
    this.slot = undefined
    this.halfOpenAt = now
    if (result === 'ok') {
      this.good += 1
      this.pause = 0
      if (this.good < 3) return
      this.isOpen = false
      this.justClosed = true
      this.okBefore = 0
      this.failBefore = 0
      this.#go('Degraded')
    } else if (result !== 'none') {
      this.pause = Math.min(Math.max(this.pause * 2, 30_000), 300_000)
      this.halfOpenAt = now + this.pause
    }
  }

  #go(to: HealthStatus): void {
    if (to === this.state) return
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
    redis = openRedis([services.redisUrl], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  })
  after(async () => {
    await closeRedis(redis)
    await services.stop()
  })

  const plain = { latencyMs: 5, source: 'call', isPlain: true } as const
  /** Good attempts of one account. */
  const succeed = (name: string, now: number, times = 1) =>
    recordSuccesses(redis, name, { latenciesMs: Array.from({ length: times }, () => 20), now })
  /** Failed attempts one after another, of five callers in turn by default. */
  let failures = 0
  const fail = async (name: string, now: number, times = 1, attempt: Partial<AttemptRecord> = {}) => {
    const needed: boolean[] = []
    for (let index = 0; index < times; index += 1) {
      failures += 1
      const voter = VOTERS[failures % VOTERS.length]
      const failed = { ...plain, result: 'fail', code: 'UPSTREAM_ERROR', voter, ...attempt, now } as const
      needed.push((await recordAttempt(redis, name, failed)).needsProbe)
    }
    return needed
  }
  const view = async (name: string, now: number) => viewHealth(await redis.hgetall(upstreamKeys.health(name)), now)

  it('health in Redis does what the pure functions say, attempt by attempt, for any history', async () => {
    const step = fc.record({
      pauseMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 400_000 })),
      result: fc.constantFrom<AttemptRecord['result']>(...RESULTS),
      latencyMs: fc.integer({ min: 0, max: 15_000 }),
      source: fc.constantFrom('call', 'call', 'call', 'probe'),
      isPlain: fc.constantFrom(true, true, false),
      voter: fc.constantFrom(...VOTERS),
      asksForTrial: fc.boolean(),
      isRepeat: fc.constantFrom(false, false, true),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
        const name = slug()
        const model = new Model()
        let now = START
        for (const [index, { pauseMs, asksForTrial, ...attempt }] of steps.entries()) {
          now += pauseMs
          let slot: string | undefined
          if (asksForTrial) {
            const answer = await acquireHalfOpenSlot(redis, name, { token: `t${index}`, now })
            const expected = !model.isOpen ? 'closed' : model.halfOpenAt > now ? 'wait' : 'slot'
            assert.equal(answer.kind, expected)
            if (answer.kind === 'slot') {
              slot = `t${index}`
              model.slot = slot
              model.halfOpenAt = now + HALF_OPEN_LEASE_MS
            }
          }
          const record = { ...attempt, slot } as AttemptRecord
          const seen = await recordAttempt(redis, name, { ...record, now })
          model.record(now, record)
          assert.deepEqual([seen.state, seen.needsProbe], [model.state, model.needsProbe])
          assert.ok(Math.abs(seen.score - model.score()) <= 1, `${seen.score} for ${model.score()}`)
        }
        const shown = await view(name, now)
        assert.deepEqual([shown.status, shown.isOpen], [model.state, model.isOpen])
        assert.ok(Math.abs(shown.score - clampToBand(model.score(), model.state)) <= 1)
        const written = await redis.xrange(upstreamKeys.healthChanges(name), '-', '+')
        const pairs = written.map(([, fields]) => `${fields[3]}>${fields[5]}`)
        assert.deepEqual(pairs, model.changes)
      }),
      { numRuns: 150 },
    )
  })

  it('health in Redis counts several good calls the same in a single step and one after the other', async () => {
    const [together, apart] = [slug(), slug()]
    const latenciesMs = [3, 20, 700, 9_000, 60, 60, 12_000]
    await recordSuccesses(redis, together, { latenciesMs, now: START })
    for (const latencyMs of latenciesMs)
      await recordAttempt(redis, apart, { ...plain, result: 'ok', latencyMs, now: START })
    const [first, second] = await Promise.all([together, apart].map((name) => redis.hgetall(upstreamKeys.health(name))))
    assert.deepEqual(first, second)
  })

  it('health in Redis knows when the first attempt was good, until which Healthy is an assumption', async () => {
    const name = slug()
    assert.equal((await view(name, START)).firstOkAt, 0)
    await fail(name, START)
    assert.equal((await view(name, START)).firstOkAt, Number.POSITIVE_INFINITY)
    await succeed(name, START + 1_000)
    await succeed(name, START + 2_000)
    assert.equal((await view(name, START + 3_000)).firstOkAt, START + 1_000)
  })

  it('health in Redis opens the breaker at five plain failures in a row of five callers, and not at four', async () => {
    const name = slug()
    await succeed(name, START, 40)
    await fail(name, START + 2_000, 4)
    assert.equal((await view(name, START + 2_000)).status, 'Healthy')
    await fail(name, START + 2_000)
    const { status, score, isOpen, halfOpenAt } = await view(name, START + 2_000)
    assert.deepEqual([status, score, isOpen, halfOpenAt], ['Down', 39, true, START + 32_000])
  })

  it('health in Redis counts repeats of a failed call as failures in a row, and once for the score', async () => {
    const [once, repeated] = [slug(), slug()]
    await fail(once, START + 2_000)
    await fail(repeated, START + 2_000)
    await fail(repeated, START + 2_000, 2, { isRepeat: true })
    const [first, second] = [await view(once, START + 2_000), await view(repeated, START + 2_000)]
    assert.deepEqual([second.score, second.parts.fail], [first.score, 1])
    await fail(repeated, START + 2_000, 2, { isRepeat: true })
    assert.equal((await view(repeated, START + 2_000)).isOpen, true)
  })

  it('health in Redis is checked again within a minute while it is in trouble, and ever later if the source wants few probes', () => {
    assert.equal(recheckPauseMs({ isRare: false, troubledForMs: 1_000_000 }), 45_000)
    const probes: number[] = []
    for (let at = 0; at < 1_800_000; at += recheckPauseMs({ isRare: true, troubledForMs: at })) probes.push(at)
    assert.deepEqual(probes.slice(0, 4), [0, 45_000, 90_000, 180_000])
    assert.equal(probes.length, 7)
  })

  it('health in Redis keeps the breaker closed while less than a second has passed since the last good attempt', async () => {
    const name = slug()
    for (let at = START; at < START + 900; at += 100) {
      if (at === START) await succeed(name, at)
      await fail(name, at, 2)
    }
    assert.equal((await view(name, START + 900)).isOpen, false)
    await fail(name, START + 1_000)
    assert.equal((await view(name, START + 1_000)).isOpen, true)
  })

  it('health in Redis keeps the breaker closed for failures of one account alone, and asks for a probe, which decides', async () => {
    const name = slug()
    assert.deepEqual(await fail(name, START, 6, { voter: 'a' }), [false, false, false, true, false, false])
    assert.equal((await view(name, START)).isOpen, false)
    const probe = { ...plain, source: 'probe', code: 'UPSTREAM_ERROR', now: START + 10 } as const
    await recordAttempt(redis, name, { ...probe, result: 'fail' })
    assert.equal((await view(name, START + 10)).isOpen, true)

    const well = slug()
    await fail(well, START, 5, { voter: 'a' })
    await recordAttempt(redis, well, { ...probe, result: 'ok' })
    assert.deepEqual(await fail(well, START + 20, 4, { voter: 'a' }), [false, false, false, false])

    const mended = slug()
    await recordAttempt(redis, mended, { ...probe, result: 'fail' })
    await succeed(mended, START + 20, 100)
    await fail(mended, START + 2_000, 6, { voter: 'a' })
    assert.equal((await view(mended, START + 2_000)).isOpen, false, 'a good attempt ends what the probe said')
  })

  it('health in Redis counts no vote of before the last good attempt for the breaker', async () => {
    const name = slug()
    for (const voter of ['b', 'c', 'd', 'e']) await fail(name, START, 1, { voter })
    // There are so many that the breaker needs five failures in a row.
    await succeed(name, START + 10, 100)
    await fail(name, START + 2_000, 6, { voter: 'a' })
    assert.equal((await view(name, START + 2_000)).isOpen, false)
  })

  it('health in Redis is not Down for everybody by the failures of one account, however many; a probe or others decide', async () => {
    const [probed, joined] = [slug(), slug()]
    let asked = 0
    for (const name of [probed, joined]) {
      // Good answers between them keep the breaker closed.
      for (let index = 0; index < 40; index += 1) {
        asked += (await fail(name, START + index, 3, { voter: 'a' })).filter(Boolean).length
        await succeed(name, START + index)
      }
      await fail(name, START + 40, 1, { voter: 'b' })
      const { status, unclampedScore } = await view(name, START + 40)
      assert.deepEqual([status, unclampedScore < 40], ['Degraded', true])
    }
    assert.equal(asked, 2, 'a probe is requested at once, and once a minute')
    await fail(probed, START + 50, 1, { source: 'probe' })
    for (const voter of ['c', 'd', 'e']) await fail(joined, START + 50, 1, { voter })
    for (const name of [probed, joined]) assert.equal((await view(name, START + 50)).status, 'Down')
    // Much later the breaker has forgotten the failures of others.
    const later = slug()
    for (const voter of ['b', 'c', 'd', 'e']) await fail(later, START, 1, { voter })
    await succeed(later, START)
    await fail(later, START + 20 * HALF_LIFE_MS, 20, { voter: 'a' })
    assert.equal((await view(later, START + 20 * HALF_LIFE_MS)).status, 'Degraded')
  })

  it('health in Redis keeps the breaker closed for failures of requests with undeclared parameters, which leave the score alone', async () => {
    const name = slug()
    await fail(name, START, 60, { isPlain: false })
    const { isOpen, status, score, parts } = await view(name, START)
    assert.deepEqual([isOpen, status, score, parts.fail], [false, 'Healthy', 100, 0])
  })

  it('health in Redis keeps the breaker closed for an upstream that fails every second attempt, and shows it Down', async () => {
    for (const perSecond of [1, 20]) {
      const name = slug()
      let random = 7
      const isGood = () => {
        random = (random * 48_271) % 2_147_483_647
        return random % 2 === 0
      }
      let opened = 0
      // In the middle of such a time its record is no longer clean.
      for (let index = 0; index < 400; index += 1) {
        const now = START + (index * 1_000) / perSecond
        if (index < 12 ? index % 2 === 0 : isGood()) await succeed(name, now)
        else await fail(name, now)
        if ((await view(name, now)).isOpen) opened += 1
      }
      assert.equal(opened, 0, `${perSecond} a second`)
      assert.equal((await view(name, START + 400_000 / perSecond)).status, 'Down')
    }
  })

  it('health in Redis opens the breaker for requests that hang before they end, and for fewer if the upstream takes fewer at once', async () => {
    const name = slug()
    await succeed(name, START, 40)
    await fail(name, START + 3_000, 2, { result: 'hanging', failuresToOpen: 2 })
    assert.equal((await view(name, START + 3_000)).isOpen, true)
    // Their end is counted, but not in the row of failures again.
    await fail(name, START + 10_000, 2, { result: 'late' })
    const { run, fail: failed } = await redis.hgetall(upstreamKeys.health(name))
    assert.deepEqual([run, Number(failed)], ['-2', 2])
  })

  it('health in Redis gives the half-open slot of an open breaker to one attempt, and to another if that attempt is lost', async () => {
    const name = slug()
    await fail(name, START, 5)
    const early = await acquireHalfOpenSlot(redis, name, { token: 'early', now: START + 29_600 })
    assert.deepEqual(early, { kind: 'wait', waitMs: 400 })
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((token) => acquireHalfOpenSlot(redis, name, { token, now: START + 30_000 })),
    )
    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['slot', 'wait', 'wait'])
    const late = await acquireHalfOpenSlot(redis, name, { token: 'd', now: START + 30_001 + HALF_OPEN_LEASE_MS })
    assert.equal(late.kind, 'slot')
  })

  it('health in Redis leaves the half-open slot of an open breaker to a probe while the calls of a caller failed of late, or said nothing in the slot', async () => {
    const name = slug()
    await fail(name, START, 5)
    const acquire = (voter: string, now: number) => acquireHalfOpenSlot(redis, name, { token: voter, voter, now })
    assert.deepEqual(await acquire('a', START + 30_000), { kind: 'probe' })
    assert.deepEqual(await acquire('a', START + 29_500), { kind: 'wait', waitMs: 500 })
    assert.deepEqual(await acquire('other', START + 30_000), { kind: 'slot' })
    await recordAttempt(redis, name, { ...plain, result: 'none', slot: 'other', voter: 'other', now: START + 30_000 })
    assert.deepEqual(await acquire('other', START + 30_000), { kind: 'probe' }, 'its attempt said nothing')
    assert.deepEqual(await acquire('a', START + VOTE_MS - 1), { kind: 'probe' })
    assert.deepEqual(await acquire('a', START + VOTE_MS), { kind: 'slot' })
  })

  it('health in Redis counts all that one wide network fails with as the vote of one caller', async () => {
    assert.equal(voterOf({ accountId: 'a', group: 'h1/q2/h3/h4' }), voterOf({ accountId: 'b', group: 'h1/q5/h6/h7' }))
    assert.equal(voterOf({ accountId: 'a' }), 'a')
    const name = slug()
    const asked = await fail(name, START, 40, { voter: 'h1' })
    assert.deepEqual([asked.filter(Boolean).length, (await view(name, START)).isOpen], [1, false])
    // There are more voters than Redis stores.
    for (let index = 0; index < 40; index += 1) await fail(name, START, 1, { voter: `v${index}` })
    const { voters } = await redis.hgetall(upstreamKeys.health(name))
    assert.equal(voters?.split(',').length, 32)
    assert.ok(voters?.endsWith(`v39@${START}`))
  })

  it('a half-open attempt that is allowed at once is not refused by a process whose clock lags a little', () => {
    const hash = { open: '1', trialAt: '1000000', trialBy: '' }
    assert.equal(halfOpenWaitMs(hash, 999_900), 0)
    assert.equal(halfOpenWaitMs(hash, 999_000), 1_000)
    assert.equal(halfOpenWaitMs({ ...hash, trialBy: 'held', trialAt: '1030000' }, 999_900), 1_000)
  })

  it('health in Redis quotes a second while a half-open attempt is under way, and gives its slot again to the same token', async () => {
    const name = slug()
    await fail(name, START, 5)
    let now = START + 30_000
    const acquire = (token: string, at = now) => acquireHalfOpenSlot(redis, name, { token, now: at })
    const quoted = async (at = now) => {
      const answer = await acquire('other', at)
      assert.ok(answer.kind === 'wait', answer.kind)
      assert.equal(halfOpenWaitMs(await redis.hgetall(upstreamKeys.health(name)), at), answer.waitMs)
      return answer.waitMs
    }
    for (const pauseMs of [30_000, 60_000, 120_000]) {
      assert.equal((await acquire(`t${pauseMs}`)).kind, 'slot')
      assert.equal(await quoted(), 1_000)
      // Redis may have run it and lost its acknowledgement.
      assert.equal((await acquire(`t${pauseMs}`)).kind, 'slot')
      assert.equal((await acquire(`t${pauseMs}`, now + 500)).kind, 'slot')
      await recordAttempt(redis, name, { ...plain, result: 'fail', slot: `t${pauseMs}`, now })
      assert.equal(await quoted(), 2 * pauseMs)
      now += 2 * pauseMs
    }
    assert.equal((await acquire('good')).kind, 'slot')
    await recordAttempt(redis, name, { ...plain, result: 'ok', slot: 'good', now })
    assert.equal((await acquire('dies')).kind, 'slot')
    assert.equal(await quoted(), 1_000)
    assert.equal(await quoted(now + HALF_OPEN_LEASE_MS - 400), 400)
    assert.equal((await acquire('next', now + HALF_OPEN_LEASE_MS)).kind, 'slot')
  })

  it('health in Redis waits 30, 60, 120 and up to 300 seconds between half-open attempts that fail, and 30 again after a good one', async () => {
    const name = slug()
    await fail(name, START, 5)
    let now = START
    const attempt = async (result: 'ok' | 'fail', index: number) => {
      const { halfOpenAt = 0 } = await view(name, now)
      const pause = (halfOpenAt - now) / 1_000
      now = halfOpenAt
      assert.equal((await acquireHalfOpenSlot(redis, name, { token: `t${index}`, now })).kind, 'slot')
      await recordAttempt(redis, name, { ...plain, result, slot: `t${index}`, now })
      return pause
    }
    const pauses: number[] = []
    for (let index = 0; index < 6; index += 1) pauses.push(await attempt('fail', index))
    assert.deepEqual(pauses, [30, 60, 120, 240, 300, 300])
    assert.deepEqual([await attempt('ok', 20), await attempt('fail', 21), await attempt('fail', 22)], [300, 0, 30])
    await attempt('ok', 23)
    await attempt('ok', 24)
    const { status, isOpen } = await view(name, now)
    assert.deepEqual([status, isOpen], ['Degraded', false])
  })

  it('health in Redis keeps times and counts without loss', async () => {
    const name = slug()
    // Fractions that binary numbers and Redis' microseconds have both.
    const now = START + 0.125
    await fail(name, now, 5)
    assert.equal((await view(name, now)).halfOpenAt, now + 30_000)
    const answer = await acquireHalfOpenSlot(redis, name, { token: 'early', now: now + 29_998.75 })
    assert.deepEqual(answer, { kind: 'wait', waitMs: 2 })
    const fading = slug()
    await fail(fading, START)
    await recordAttempt(redis, fading, { ...plain, result: 'none', now: START + 1_000 })
    const { fail: faded } = await redis.hgetall(upstreamKeys.health(fading))
    assert.ok(Math.abs(Number(faded) - decayed(1, 1_000)) < 5e-16)
  })

  it('health in Redis announces every change of a state or a breaker to the other processes, and nothing else', async () => {
    const name = slug()
    const heard = (act: () => Promise<unknown>) => publishedDuring(services.redisUrl, channels.health, act)
    assert.deepEqual(await heard(() => succeed(name, START, 40)), [])
    assert.deepEqual(await heard(() => fail(name, START + 2_000, 4)), [])
    assert.deepEqual(await heard(() => fail(name, START + 2_000)), [name])
    const acquire = (token: string) => acquireHalfOpenSlot(redis, name, { token, now: START + 32_000 })
    assert.deepEqual(await heard(() => acquire('first')), [name])
    assert.deepEqual(await heard(() => acquire('second')), [])
    const success = { ...plain, result: 'ok', now: START + 32_000 } as const
    assert.deepEqual(await heard(() => recordAttempt(redis, name, success)), [])
    assert.deepEqual(await heard(() => recordAttempt(redis, name, { ...success, slot: 'first' })), [name])
  })

  it('health in Redis counts a change once when many workers see it at once', async () => {
    const name = slug()
    await Promise.all(Array.from({ length: 50 }, (_, index) => fail(name, START, 1, { voter: VOTERS[index % 5] })))
    const changes = await redis.xrange(upstreamKeys.healthChanges(name), '-', '+')
    assert.deepEqual(
      changes.map(([, fields]) => fields[5]),
      ['Degraded', 'Down'],
    )
  })

  it('a process reads the upstreams that calls use at each poll, and a few of the others in turn', async (t) => {
    const slugs = Array.from({ length: 60 }, (_, index) => `many-${index}`)
    const log = createLog({ level: 'silent', pretty: false }, 'test')
    const sources = slugs.map((name) => ({ slug: name }))
    const health = new HealthCache(
      { redis, announcements: { on: () => undefined }, clock: new RedisClock(redis, log), log },
      sources,
    )
    const read = t.mock.method(redis, 'hgetall')
    const polled = async () => {
      read.mock.resetCalls()
      await health.poll()
      return read.mock.calls.map(({ arguments: [key] }) => slugs.findIndex((name) => upstreamKeys.health(name) === key))
    }
    const first = await polled()
    assert.deepEqual(
      first,
      Array.from({ length: 28 }, (_, index) => index),
    )
    await succeed('many-3', START, 3)
    assert.equal(health.breakerWaitMsOfUpstream('many-3'), undefined)
    const second = await polled()
    assert.deepEqual([second.length, second[0]], [29, 3])
    assert.ok(health.ofUpstream('many-3').lastOkAt > 0)
    const third = await polled()
    assert.equal(new Set([...first, ...second, ...third]).size, 60)
    assert.deepEqual(await polled(), first)
  })
})
