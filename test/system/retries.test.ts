import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { accountKeys } from '../../src/redis/keys.ts'
import { AttemptError } from '../../workers/errors/attempt-error.ts'
import { withRetries } from '../../workers/upstream/retry.ts'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'
const MEALS = '/v1/call/meal-recipes/search?s=never-stored'
const DOG = '/v1/call/dog-images/random'
const POST = '/v1/call/mock-data/posts?id=1'
const post = { id: 1, userId: 1, title: 't', body: 'b' }
const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }

describe('a call', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      caps: {
        'random-facts': 'concurrency=50,10000/1',
        'dog-images': 'concurrency=50,10000/1',
        'meal-recipes': 'concurrency=50,10000/1',
        'mock-data': undefined,
        currency: 'concurrency=1,1/86400',
      },
      environment: {
        // Nobody listens there.
        UPSTREAM_SUNRISE_SUNSET_URL: 'http://127.0.0.1:1',
        UPSTREAM_SUNRISE_SUNSET_CAPS: 'concurrency=1,1/86400',
      },
      timeoutMs: 15_000,
    })
    ;({ gateway, upstream, account } = stage)
  })
  after(() => stage.stop())

  const call = (path: string, url = gateway.url): Promise<Answer> => send(gateway, path, { key: account.live, url })

  it('a call that fails upstream is tried three times, and answered with the first success', async () => {
    upstream.play('random-facts', (_arrival, response) => void response.writeHead(500).end())
    const failed = await call(FACT)
    assert.equal(failed.status, 502)
    assert.ok(failed.text.includes('UPSTREAM_ERROR'))
    assert.match(failed.headers.get('server-timing') ?? '', /attempts;desc="3"/)
    assert.equal(upstream.arrivalsOf('random-facts').length, 3)
    let left = 2
    upstream.play('mock-data', (_arrival, response) => {
      left -= 1
      return left >= 0 ? void response.writeHead(502).end() : post
    })
    assert.equal((await call(POST)).status, 200)
    assert.equal(upstream.arrivalsOf('mock-data').length, 3)
  })

  it('a call whose source refuses connections is tried three times, and does not count against the cap', async () => {
    const answer = await call('/v1/call/sunrise-sunset/times?lat=1&lng=2')
    assert.equal(answer.status, 502, answer.text)
    assert.equal(answer.body.error.message, 'The upstream API failed (connection refused).')
    assert.match(answer.headers.get('server-timing') ?? '', /attempts;desc="3"/)
  })

  it('a call is not tried again if that cannot help', async () => {
    for (const [status, expected] of [
      [400, 502],
      [404, 502],
      [401, 502],
      [302, 502],
    ] as const) {
      upstream.play('dog-images', (_arrival, response) => void response.writeHead(status, { location: '/x' }).end('{}'))
      const before = upstream.arrivalsOf('dog-images').length
      assert.equal((await call(DOG)).status, expected)
      assert.equal(upstream.arrivalsOf('dog-images').length - before, 1, `${status}`)
      // If so many failures came in a row, they would open the breaker.
      upstream.play('dog-images', () => dog)
      assert.equal((await call(DOG)).status, 200)
    }
  })

  it('a call is tried again after what the upstream asks for, or not at all when that is too late', async () => {
    const ask = (seconds: string) => {
      let isFirst = true
      upstream.play('dog-images', (_arrival, response) => {
        if (!isFirst) return dog
        isFirst = false
        return void response.writeHead(503, { 'retry-after': seconds }).end()
      })
    }
    ask('1')
    const before = upstream.arrivalsOf('dog-images').length
    assert.equal((await call(DOG)).status, 200)
    const [first, second] = upstream.arrivalsOf('dog-images').slice(before)
    assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990)
    ask('30')
    const late = await call(DOG)
    assert.equal(late.status, 502)
    assert.equal(late.headers.get('retry-after'), '30')
    assert.equal(upstream.arrivalsOf('dog-images').length - before, 3)
  })

  it('a call is answered at once with its failure if the cap has no room for another attempt before its deadline', async () => {
    upstream.play('currency', (_arrival, response) => void response.writeHead(500).end())
    const startedAt = performance.now()
    const { status, body, headers } = await call('/v1/call/currency/latest')
    assert.deepEqual([status, body.error.code], [502, 'UPSTREAM_ERROR'])
    assert.match(headers.get('server-timing') ?? '', /attempts;desc="1"/)
    // Its caller would wait 15 s.
    assert.ok(performance.now() - startedAt < 10_000)
  })

  it('if all of many calls fail, the breaker opens, and only few of the calls are sent', async () => {
    // As many callers as the breaker needs to open.
    const callers = await Promise.all(Array.from({ length: 5 }, () => signUp(gateway)))
    const underWay: (() => void)[] = []
    let isOpen = false
    upstream.play('meal-recipes', async (_arrival, response) => {
      if (!isOpen) await new Promise<void>((resolve) => underWay.push(resolve))
      response.writeHead(500).end()
    })
    const answers = Array.from({ length: 200 }, (_, index) =>
      send(gateway, `${MEALS}-${index}`, { key: callers[index % 5]?.live ?? '' }),
    )
    // A call that comes when the breaker is open would be refused at once.
    const inFlight = () => Promise.all(callers.map(({ id }) => stage.redis.zcard(accountKeys.inFlight(id, 'live'))))
    await until(async () => (await inFlight()).reduce((sum, calls) => sum + calls) === answers.length)
    // The source answers one request after another, as many as the test needs.
    await until(async () => {
      underWay.shift()?.()
      isOpen = (await send(gateway, '/v1/catalog/meal-recipes')).body.health.status === 'Down'
      return isOpen
    })
    for (const end of underWay) end()
    for (const { status } of await Promise.all(answers)) assert.equal(status, 502)
    const sent = upstream.arrivalsOf('meal-recipes').length
    // The 50 requests that the cap allows at once, and the requests that took the places of
    // answered requests.
    assert.ok(sent >= 50 && sent <= 100, `${sent} requests`)
  })
})

describe('repeats', () => {
  it('repeats of an upstream are at most a fifth of its calls under way', async () => {
    const budget = { calls: 0, retries: 0 }
    const signal = new AbortController().signal
    let runs = 0
    const fail = async (): Promise<never> => {
      runs += 1
      await setImmediate()
      throw new AttemptError('UPSTREAM_ERROR', { isRetryable: true })
    }
    const options = { mayRepeat: () => true, budget, retryMsMin: 1_000, remainingMs: () => 60_000, signal }
    await Promise.allSettled(Array.from({ length: 100 }, () => withRetries(fail, options)))
    // Twenty at once. If a call gives up, it makes room for another call.
    assert.ok(runs > 100 && runs <= 140, `${runs} runs of 100 calls`)
  })
})
