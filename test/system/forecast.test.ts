import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { isCapQuiet, openOperatorRedis } from '../support/cap-state.ts'
import { type Account, type Answer, sendPatiently, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const TIMEOUT_MS = 6_000

const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/hound/a.jpg' }
const fact = recorded('random-facts')

function retryAfterOf(answer: Answer): number {
  const seconds = Number(answer.headers.get('retry-after'))
  assert.ok(seconds > 0, `no Retry-After with ${answer.status} ${answer.text}`)
  return seconds
}

function minuteLeft(answer: Answer): number {
  return Number(/"minute";r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1])
}

describe('the forecast of a call', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  const call = (path: string): Promise<Answer> => sendPatiently(gateway, path, { key: account.live })

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      workers: 2,
      caps: {
        'random-facts': 'concurrency=4,3/8',
        'dog-images': 'concurrency=4,2/2',
        timezone: 'concurrency=4,1000/1',
        'sunrise-sunset': 'concurrency=4,1000/1',
        'code-host-user': 'concurrency=4,1000/1',
        dictionary: 'concurrency=4,1/60',
        trivia: 'concurrency=1,1/2',
        'mock-data': 'concurrency=1,1000/1',
        weather: 'concurrency=128,110/20',
      },
      timeoutMs: TIMEOUT_MS,
    })
    ;({ gateway, upstream, account } = stage)
    upstream.play('random-facts', () => fact)
    upstream.play('dog-images', () => dog)
  })
  after(() => stage.stop())

  it('a call with its slot after its deadline is refused at once, free of charge, and served after Retry-After', async () => {
    const path = '/v1/call/random-facts/random'
    const served = await Promise.all([call(path), call(path), call(path)])
    assert.deepEqual(
      served.map(({ status }) => status),
      [200, 200, 200],
    )
    const before = Math.min(...served.map(minuteLeft))
    const spent = () => performance.now() - (upstream.arrivalsOf('random-facts')[0]?.at ?? 0)
    const spentBefore = spent()
    const refused = await call(path)
    const spentAfter = spent()
    assert.equal(refused.status, 503)
    assert.ok(refused.text.includes('UPSTREAM_CAP_EXHAUSTED'), refused.text)
    assert.equal(upstream.arrivalsOf('random-facts').length, 3)
    assert.equal(minuteLeft(refused), before)
    const seconds = retryAfterOf(refused)
    // The gateway's window is the upstream's window and a margin, rounded up to whole seconds, and
    // not a second more.
    const [least, most] = [8_500 - spentAfter - 1_200, 8_500 - spentBefore + 1_200]
    assert.ok(seconds * 1_000 >= least && seconds * 1_000 <= most, `${seconds} s, not from ${least} to ${most} ms`)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    assert.equal((await call(path)).status, 200)
  })

  it('a call that waits for a shared answer which nobody brings is refused at once, free of charge, if its own slot is too late', async () => {
    upstream.play('dictionary', () => [{ word: 'polenta', meanings: [], phonetics: [] }])
    const first = await call('/v1/call/dictionary/define?word=polenta')
    assert.equal(first.status, 200, first.text)
    // The call that it follows got its place from a worker that has died.
    const endpoint = (await loadCatalog(new Map())).get('dictionary')?.endpoints.get('/define')?.declaration
    const followed = { slug: 'dictionary', endpoint: '/define', parameters: { word: 'grits' }, extra: [], raw: false }
    const keys = cacheKeys(endpoint ?? assert.fail(), { ...followed, accountId: account.id })
    await stage.redis.set(keys?.coalesced ?? assert.fail(), 'other|gone', 'PX', 60_000)
    const refused = await call('/v1/call/dictionary/define?word=grits')
    assert.equal(refused.status, 503)
    assert.ok(refused.text.includes('UPSTREAM_CAP_EXHAUSTED'), refused.text)
    assert.ok(retryAfterOf(refused) > TIMEOUT_MS / 1_000)
    assert.equal(minuteLeft(refused), minuteLeft(first))
    assert.equal(upstream.arrivalsOf('dictionary').length, 1)
    await until(async () => await isCapQuiet(stage.redis, 'dictionary'))
  })

  it('a call with its slot before its deadline waits and is served', async () => {
    const path = '/v1/call/dog-images/random'
    const answers = await Promise.all(Array.from({ length: 4 }, () => call(path)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    const arrivals = upstream.arrivalsOf('dog-images').map(({ at }) => at)
    assert.equal(arrivals.length, 4)
    assert.ok((arrivals[2] ?? 0) - (arrivals[0] ?? 0) > 2_000)
    const waited = answers.filter(({ headers }) => {
      const permitMs = Number(/permit;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1])
      return permitMs > 1_000
    })
    assert.equal(waited.length, 2)
  })

  it('a call without a ticket, because its cap had room, is refused exactly and free of charge when others have used it up', async () => {
    const release = Promise.withResolvers<void>()
    upstream.play('weather', async ({ url }) => {
      if (url.includes('latitude=20')) await release.promise
      return recorded('weather')
    })
    const { live: key } = await signUp(gateway)
    const callCell = (cell: number) =>
      sendPatiently(gateway, `/v1/call/weather/current?latitude=${cell / 10}&longitude=3`, { key })
    // Its reply says that there is room for 109 more calls, so half of them need no ticket.
    const first = await callCell(0)
    const held = callCell(200)
    await until(() => upstream.arrivalsOf('weather').length === 2)
    // Others use up the cap before its answer arrives. An identical call shares the answer.
    const log = capKeys.of('weather', 'shared', 'log')
    const others = Array.from({ length: 108 }, (_, index) => `other|call|${index}`)
    await stage.redis.zadd(log, ...others.flatMap((member) => [Date.now(), member]))
    assert.equal((await callCell(201)).status, 503)
    const identical = callCell(200)
    release.resolve()
    assert.deepEqual([(await held).status, (await identical).status], [200, 200])
    assert.equal(upstream.arrivalsOf('weather').length, 2)
    await stage.redis.zrem(log, ...others)
    const spent = () => performance.now() - (upstream.arrivalsOf('weather')[0]?.at ?? 0)
    const spentBefore = spent()
    const answers = await Promise.all(Array.from({ length: 120 }, (_, index) => callCell(index + 1)))
    const refused = answers.filter(({ status }) => status !== 200)
    // There was room for 108. If a busy worker finds a permit too old, it gives the permit back,
    // perhaps after other calls were refused.
    assert.ok(refused.length >= 12 && refused.length < 30, `${refused.length}`)
    const served = answers.length - refused.length
    // Each call was refused between these two instants. Whole seconds are rounded up.
    const [least, most] = [20_000 - spent(), 21_500 - spentBefore]
    for (const answer of refused) {
      assert.equal(answer.status, 503, answer.text)
      assert.ok(answer.text.includes('UPSTREAM_CAP_EXHAUSTED'), answer.text)
      const quotedMs = retryAfterOf(answer) * 1_000
      assert.ok(quotedMs >= least && quotedMs <= most, `${quotedMs} of ${least} to ${most} ms`)
    }
    assert.equal(upstream.arrivalsOf('weather').length, 2 + served)
    assert.equal(minuteLeft(await callCell(201)), minuteLeft(first) - 2 - served)
    await until(async () => await isCapQuiet(stage.redis, 'weather'))
  })

  it('a call to an upstream that limits us is refused with its Retry-After by all workers, and nothing is sent', async () => {
    const limiting: [string, string, (() => string) | undefined, number][] = [
      ['timezone', '/v1/call/timezone/current?timezone=UTC', () => '30', 30],
      [
        'sunrise-sunset',
        '/v1/call/sunrise-sunset/times?lat=1&lng=2',
        () => new Date(Date.now() + 40_000).toUTCString(),
        40,
      ],
    ]
    for (const [slug, path, header, seconds] of limiting) {
      upstream.play(slug, (_arrival, response) => {
        response.writeHead(429, { 'retry-after': header?.() ?? '' }).end('{}')
      })
      const first = await call(path)
      assert.equal(first.status, 502, first.text)
      assert.ok(first.text.includes('UPSTREAM_RATE_LIMITED'), first.text)
      assert.ok(Math.abs(retryAfterOf(first) - seconds) <= 2)
      const arrived = upstream.arrivalsOf(slug).length
      assert.equal(arrived, 1)
      const redis = openOperatorRedis(gateway)
      await until(async () => (await redis.hget(capKeys.of(slug, 'shared', 'state'), 'closed')) !== null)
      redis.disconnect()
      for (const later of await Promise.all(Array.from({ length: 20 }, () => call(path)))) {
        assert.equal(later.status, 502, later.text)
        assert.ok(later.text.includes('UPSTREAM_RATE_LIMITED'), later.text)
        assert.ok(Math.abs(retryAfterOf(later) - seconds) <= 2)
      }
      assert.equal(upstream.arrivalsOf(slug).length, arrived)
    }
  })

  it('a call that waits when its upstream closes for longer than it can wait is refused at once, and is not sent', async () => {
    const held: ServerResponse[] = []
    upstream.play('mock-data', (_arrival, response) => void held.push(response))
    const posts = [1, 2, 3].map((id) => call(`/v1/call/mock-data/posts?id=${id}`))
    const waiters = capKeys.of('mock-data', 'shared', 'waiters')
    await until(async () => held.length === 1 && (await stage.redis.zcard(waiters)) === 2)
    held[0]?.writeHead(429, { 'retry-after': '60' }).end('{}')
    for (const answer of await Promise.all(posts)) {
      assert.equal(answer.status, 502, answer.text)
      assert.ok(answer.text.includes('UPSTREAM_RATE_LIMITED'), answer.text)
      assert.ok(retryAfterOf(answer) > 50)
    }
    assert.equal(upstream.arrivalsOf('mock-data').length, 1)
    await until(async () => await isCapQuiet(stage.redis, 'mock-data'))
  })

  it('no more calls than an upstream says are left are sent to it before its reset', async () => {
    upstream.play('code-host-user', (_arrival, response) => {
      const isFirst = upstream.arrivalsOf('code-host-user').length === 1
      const reset = String(Math.ceil(Date.now() / 1_000) + 60)
      const headers = { 'x-ratelimit-remaining': '2', 'x-ratelimit-reset': reset, 'x-ratelimit-resource': 'core' }
      response.writeHead(200, isFirst ? headers : {}).end('{"login":"a","id":1}')
    })
    const statuses: number[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      statuses.push((await call(`/v1/call/code-host-user/profile?username=${name}`)).status)
    }
    assert.deepEqual(statuses, [200, 200, 200, 503])
    assert.equal(upstream.arrivalsOf('code-host-user').length, 3)
  })

  it('a call that is answered from a pool takes no slot from the next call, and is not refused because it has no slot', async () => {
    const question = { type: 'boolean', difficulty: 'easy', category: 'c', question: 'q', correct_answer: 'True' }
    const results = Array.from({ length: 50 }, () => ({ ...question, incorrect_answers: ['False'] }))
    upstream.play('trivia', () => ({ response_code: 0, results }))
    const redis = openOperatorRedis(gateway)
    assert.equal((await call('/v1/call/trivia/questions?amount=1')).status, 200)
    const together = await Promise.all(Array.from({ length: 20 }, () => call('/v1/call/trivia/questions?amount=1')))
    for (const { status, text } of together) assert.equal(status, 200, text)
    for (let round = 0; round < 7; round += 1) {
      const answer = await call('/v1/call/trivia/questions?amount=4')
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.body.data.results.length, 4)
    }
    assert.equal(upstream.arrivalsOf('trivia').length, 1)
    // Only the sender of an undeclared parameter gets what it changes in the answer.
    assert.equal((await call('/v1/call/trivia/questions?amount=4&x=1')).status, 200)
    assert.deepEqual(
      upstream.arrivalsOf('trivia').map(({ url }) => new URL(url, 'http://a').searchParams.get('x')),
      [null, '1'],
    )
    await until(async () => await isCapQuiet(redis, 'trivia'))
    redis.disconnect()
  })
})
