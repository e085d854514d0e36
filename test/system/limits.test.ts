import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { accountKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Answer, createKey, send, sendPatiently, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'

/**
 * Free is small, so that a test reaches its limits soon. Pro has a large month and many calls at
 * once.
 */
const PLANS = JSON.stringify({
  Free: { perMinute: 10, perMonth: 1_000, inFlight: 1_000 },
  Pro: { perMinute: 100, perMonth: 100_000, inFlight: 3_000 },
  Elite: { perMinute: 10_000, perMonth: 40, inFlight: 3_000 },
})

function codesOf(answers: Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, body } of answers) {
    const name = status === 200 ? '200' : `${status} ${body.code ?? body.error?.code}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

interface RateLimit {
  minute: { r: number; t: number }
  month: { r: number; t: number } | undefined
}

/**
 * Reads `RateLimit` as a structured field list (RFC 9651): quoted names with integer parameters r
 * and t.
 */
function rateLimitOf({ headers }: Answer): RateLimit {
  const items = new Map<string, { r: number; t: number }>()
  for (const item of String(headers.get('ratelimit')).split(', ')) {
    const [, name = '', r = '', t = ''] =
      /^"([a-z]+)";r=(\d+);t=(\d+)$/.exec(item) ?? assert.fail(`not an item: ${item}`)
    items.set(name, { r: Number(r), t: Number(t) })
  }
  return { minute: items.get('minute') ?? assert.fail('no minute'), month: items.get('month') }
}

describe('plan limits', () => {
  let gateway: Gateway
  let upstream: UpstreamServer

  before(async () => {
    upstream = await startUpstreamServer()
    upstream.play('random-facts', () => recorded('random-facts'))
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 3,
      workers: 1,
      environment: {
        ...upstream.environment('random-facts', 'dog-images', 'timezone'),
        PLAN_LIMITS: PLANS,
        UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=1000,100000/1',
        UPSTREAM_DOG_IMAGES_CAPS: 'concurrency=1000,100000/1',
      },
    })
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  const burst = (keys: string[], count: number, path = FACT, headers: Record<string, string> = {}): Promise<Answer[]> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        sendPatiently(gateway, path.replace('INDEX', String(index)), {
          key: keys[index % keys.length] ?? '',
          url: gateway.urls[index % gateway.urls.length] ?? '',
          headers,
        }),
      ),
    )

  for (const [tier, limit, count, rounds] of [
    ['developer', 10, 200, 3],
    ['pro', 100, 500, 1],
  ] as const) {
    for (const mode of ['live', 'test'] as const) {
      it(`plan limits let exactly ${limit} of ${count} simultaneous ${mode} calls over 3 nodes through`, async () => {
        for (let round = 0; round < rounds; round += 1) {
          const account = await signUp(gateway, tier)
          const more = await createKey(gateway, account.token, mode)
          const arrivedBefore = upstream.arrivals.length
          const answers = await burst([account[mode], more.key], count, `${FACT}?call=INDEX`)
          assert.deepEqual(codesOf(answers), { 200: limit, '429 RATE_LIMIT_EXCEEDED': count - limit })
          // If a worker is busy, it may lose a job to another run of the job. The number of
          // different calls counts.
          const arrived = new Set(upstream.arrivals.slice(arrivedBefore).map(({ url }) => url))
          assert.equal(arrived.size, mode === 'live' ? limit : 0)
        }
      })
    }
  }

  it('plan limits count live calls and test calls of an account separately', async () => {
    const account = await signUp(gateway)
    assert.deepEqual(codesOf(await burst([account.live], 11)), { 200: 10, '429 RATE_LIMIT_EXCEEDED': 1 })
    const [answer] = await burst([account.test], 1)
    assert.equal(answer?.status, 200)
    assert.equal(answer?.headers.get('x-gateway-mode'), 'test')
    assert.equal(rateLimitOf(answer ?? assert.fail()).month, undefined)
    assert.equal(
      answer?.headers.get('ratelimit-policy'),
      '"minute";q=10;w=60, "in-flight";q=1000;qu="concurrent-requests"',
    )
  })

  it("plan limits hold a month's quota exactly, and give back what ended in 5xx", async () => {
    const account = await signUp(gateway, 'business')
    const answers = await burst([account.live], 200)
    assert.deepEqual(codesOf(answers), { 200: 40, '429 MONTHLY_QUOTA_EXCEEDED': 160 })
    const refused = answers.find(({ status }) => status === 429) ?? assert.fail()
    const monthEnds = Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1)
    const retryAfter = Number(refused.headers.get('retry-after'))
    assert.ok(Math.abs(monthEnds - Date.now() - retryAfter * 1_000) < 15_000, `${retryAfter}`)
    const failing = await signUp(gateway, 'business')
    upstream.play('dog-images', (_arrival, response) => void response.writeHead(501).end('{}'))
    for (const answer of await burst([failing.live], 10, '/v1/call/dog-images/random')) assert.equal(answer.status, 502)
    upstream.play('timezone', (_arrival, response) => void response.writeHead(400).end('{}'))
    for (const answer of await burst([failing.live], 3, '/v1/call/timezone/current?timezone=UTC&undeclared=1'))
      assert.equal(answer.status, 400)
    const [last] = await burst([failing.live], 1)
    assert.equal(rateLimitOf(last ?? assert.fail()).month?.r, 40 - 3 - 1)
    assert.deepEqual(codesOf(await burst([failing.live], 60)), { 200: 36, '429 MONTHLY_QUOTA_EXCEEDED': 24 })
  })

  it('plan limits do not count calls that are refused before the queue', async () => {
    const account = await signUp(gateway)
    const left = async (): Promise<number> => {
      // A refusal reports what is left without taking any of it.
      return rateLimitOf(await send(gateway, '/v1/call/no-such-api/x', { key: account.live })).minute.r
    }
    assert.equal(await left(), 10)
    const refusals: [number, string, string][] = [
      [401, 'INVALID_API_KEY', FACT],
      [404, 'API_NOT_FOUND', '/v1/call/no-such-api/random'],
      [404, 'ENDPOINT_NOT_FOUND', '/v1/call/random-facts/no-such-endpoint'],
      [402, 'PLAN_UPGRADE_REQUIRED', '/v1/call/news/top'],
      [400, 'INVALID_PARAMETER', '/v1/call/weather/current?latitude=91&longitude=0'],
    ]
    for (const [status, code, path] of refusals) {
      const answer = await send(gateway, path, { key: status === 401 ? 'agw_live_x' : account.live })
      assert.equal(answer.status, status, path)
      assert.ok(answer.text.includes(code), answer.text)
    }
    assert.equal(await left(), 10)
    assert.deepEqual(codesOf(await burst([account.live], 12)), { 200: 10, '429 RATE_LIMIT_EXCEEDED': 2 })
    assert.equal(await left(), 0)
  })

  it('answers state what is left of plan limits: one call less with each admitted call, never too much, and the time of the reset', async () => {
    const account = await signUp(gateway)
    let last: Answer | undefined
    for (let call = 1; call <= 10; call += 1) {
      last = await send(gateway, FACT, { key: account.live, url: gateway.urls[call % 3] ?? '' })
      assert.equal(last.status, 200)
      const { minute, month } = rateLimitOf(last)
      assert.deepEqual([minute.r, month?.r], [10 - call, 1_000 - call])
      assert.ok(minute.t > 0 && minute.t <= 60)
      assert.equal(
        last.headers.get('ratelimit-policy'),
        '"minute";q=10;w=60, "month";q=1000, "in-flight";q=1000;qu="concurrent-requests"',
      )
      assert.equal(last.headers.get('x-ratelimit-remaining'), String(10 - call))
    }
    const refused = await send(gateway, FACT, { key: account.live })
    assert.equal(refused.status, 429)
    const { minute } = rateLimitOf(refused)
    const retryAfter = Number(refused.headers.get('retry-after'))
    assert.ok(retryAfter <= 60)
    // The refusal and the headers come from one reading.
    assert.equal(minute.t, retryAfter)
    assert.ok(refused.text.includes(`retry_after=${retryAfter}`))
    // The minute passes: the test moves its log into the past by the time in the refusal.
    const redis = openOperatorRedis(gateway)
    const log = accountKeys.minute(account.id, 'live')
    for (const id of await redis.zrange(log, '0', '-1')) await redis.zincrby(log, String(-retryAfter * 1_000_000), id)
    redis.disconnect()
    assert.equal((await send(gateway, FACT, { key: account.live })).status, 200)
  })

  it('plan limits rebuild themselves after Redis lost everything', async () => {
    const account = await signUp(gateway, 'pro')
    assert.equal((await send(gateway, FACT, { key: account.test })).status, 200)
    const redis = openOperatorRedis(gateway)
    await redis.flushall()
    redis.disconnect()
    for (const url of gateway.urls) assert.equal((await send(gateway, FACT, { key: account.test, url })).status, 200)
  })
})
