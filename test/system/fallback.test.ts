import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, afterEach, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, channels, upstreamKeys } from '../../src/redis/keys.ts'
import { type Account, send, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { modernMessage } from '../support/mcp-client.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const FIRST = 'dictionary'
const SECOND = 'dictionary-fallback'

describe('a fallback source', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: Redis

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      caps: { [FIRST]: 'concurrency=20,10000/1', [SECOND]: 'concurrency=4,100/600' },
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":50}}' },
    })
    ;({ gateway, upstream, account, redis } = stage)
  })
  after(() => stage.stop())

  const wordOf = (url: string) => url.split('/').at(-1)
  const answerFirst = () => upstream.play(FIRST, ({ url }) => [{ word: wordOf(url), meanings: [], phonetics: [] }])
  const answerSecond = () =>
    upstream.play(SECOND, ({ url }) => ({
      word: wordOf(url),
      entries: [{ partOfSpeech: 'noun', senses: [{ definition: 'D.' }] }],
    }))
  const failWith = (slug: string, status: number) =>
    upstream.play(slug, (_arrival, response) => void response.writeHead(status).end())
  const hang = (slug: string) => upstream.play(slug, (_arrival, _response: ServerResponse) => undefined)
  const define = (word: string, headers: Record<string, string> = {}) =>
    send(gateway, `/v1/call/dictionary/define?word=${word}`, { key: account.live, headers })
  const countOf = (slug: string) => upstream.arrivalsOf(slug).length
  const textOf = async (path: string) => (await gateway.apps.get(gateway.url)?.inject(path))?.body ?? assert.fail()
  const detail = async () => (await send(gateway, '/v1/catalog/dictionary')).body
  const source = (link: string | null) => /<([^>]+)>; rel="via"; title="([^"]+)"/.exec(link ?? '')?.[2]
  /**
   * Both sources are as if nothing had been tried. If a probe was running, it may record one more
   * failure.
   */
  const forget = async () => {
    answerFirst()
    answerSecond()
    await until(async () => {
      for (const slug of ['dictionary', 'dictionary.fallback']) {
        await redis.del(upstreamKeys.health(slug))
        await redis.publish(channels.health, slug)
      }
      return (await detail()).health.status === 'Healthy'
    })
  }

  afterEach(forget)

  it('a fallback source gets no request while the first source answers or does not have the word, and the answer names the source', async () => {
    answerFirst()
    answerSecond()
    const answer = await define('first')
    assert.equal(answer.status, 200)
    assert.equal(answer.body.data.word, 'first')
    assert.equal(source(answer.headers.get('link')), 'dictionaryapi.dev')
    upstream.play(FIRST, (_arrival, response) => {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"title":"No Definitions Found"}')
    })
    assert.equal((await define('nosuchword')).body.error.code, 'UPSTREAM_NOT_FOUND')
    assert.equal(countOf(SECOND), 0)
  })

  it('a fallback source answers when the first fails, once each, and stored answers still say so', async () => {
    failWith(FIRST, 522)
    const before = countOf(FIRST)
    const answer = await define('second')
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(Object.keys(answer.body.data).slice(0, 3), ['word', 'phonetic', 'meanings'])
    assert.equal(answer.body.data.meanings[0].definitions[0].definition, 'D.')
    assert.equal(source(answer.headers.get('link')), 'freedictionaryapi.com')
    assert.match(answer.headers.get('link') ?? '', /by-sa\/4\.0.*rel="license"/)
    assert.equal(countOf(FIRST) - before, 1, 'the second source is the repeat')
    const arrived = countOf(SECOND)
    const stored = await define('second')
    assert.match(stored.headers.get('cache-status') ?? '', /hit/)
    assert.equal(source(stored.headers.get('link')), 'freedictionaryapi.com')
    assert.equal(countOf(SECOND), arrived)
    const calls = ['second', 'batched'].map((word) => ({ api: FIRST, endpoint: '/define', parameters: { word } }))
    const batch = await send(gateway, '/v1/batch', {
      key: account.live,
      body: { calls: [...calls, { api: 'mock-data', endpoint: '/nothing' }] },
      headers: { accept: 'application/json' },
    })
    assert.deepEqual(
      batch.body.results.map(({ link }: { link?: string }) => source(link ?? null)),
      ['freedictionaryapi.com', 'freedictionaryapi.com', undefined],
    )
    const { headers, body } = modernMessage('tools/call', {
      name: 'call_api',
      arguments: { api: FIRST, endpoint: '/define', parameters: { word: 'second' } },
    })
    const tool = (await send(gateway, '/mcp', { key: account.live, headers, body })).body.result
    assert.equal(source(tool.structuredContent.link), 'freedictionaryapi.com')
    assert.equal(source(tool._meta['agent-api-gateway/link']), 'freedictionaryapi.com')
    const pending = await define('later', { prefer: 'respond-async' })
    assert.equal(pending.status, 202)
    const later = `/v1/calls/${pending.headers.get('x-call-id')}`
    await until(async () => (await send(gateway, later, { key: account.live })).status === 200)
    assert.equal(
      source((await send(gateway, later, { key: account.live })).headers.get('link')),
      'freedictionaryapi.com',
    )
  })

  it('a fallback source keeps the API Degraded and its calls answered while the breaker of the first is open', async () => {
    failWith(FIRST, 502)
    let word = 0
    const next = () => {
      word += 1
      return define(`open${word}`)
    }
    await until(async () => {
      const before = countOf(FIRST)
      assert.equal((await next()).status, 200)
      return countOf(FIRST) === before
    })
    const arrived = countOf(FIRST)
    for (let index = 0; index < 5; index += 1) {
      const answer = await next()
      assert.equal(answer.status, 200, answer.text)
      assert.equal(source(answer.headers.get('link')), 'freedictionaryapi.com')
    }
    assert.ok(countOf(FIRST) - arrived <= 2, 'half-open attempts alone')
    await until(async () => (await detail()).health.status === 'Degraded')
    const { health, fallback } = await detail()
    assert.ok(health.score >= 40 && health.score < 80)
    assert.deepEqual([fallback.name, fallback.answering], ['freedictionaryapi.com', true])
    assert.match(fallback.terms.summary, /CC BY-SA 4\.0/)
    const page = await textOf('/apis/dictionary')
    assert.match(page, /Live calls go to freedictionaryapi\.com meanwhile/)
    assert.match(page, /Second source: freedictionaryapi\.com/)
    const markdown = await textOf('/docs/apis/dictionary.md')
    assert.match(markdown, /Sources: dictionaryapi\.dev; freedictionaryapi\.com answers when it fails/)
    // Undeclared parameters of the caller go only to the first source, and so does its raw JSON.
    assert.equal((await define('raw', { accept: 'application/vnd.upstream+json' })).status, 502)
    assert.equal((await define('extra&more=1')).status, 502)
  })

  it('a call gets 404 if the fallback source does not have the word, and the failure of the first source if the fallback source fails too', async () => {
    failWith(FIRST, 500)
    upstream.play(
      SECOND,
      (_arrival, response) => void response.writeHead(404, { 'content-type': 'application/json' }).end('{}'),
    )
    const unknown = await define('unknownword')
    assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'UPSTREAM_NOT_FOUND'])
    failWith(SECOND, 503)
    const failed = await define('failingword')
    assert.deepEqual([failed.status, failed.body.error.code], [502, 'UPSTREAM_ERROR'])
    await until(async () => {
      await define(`down${Math.random()}`)
      return (await detail()).health.status === 'Down'
    })
    const since = ['dictionary', 'dictionary.fallback'].map((slug) => redis.hget(upstreamKeys.health(slug), 'since'))
    const latest = Math.max(...(await Promise.all(since)).map(Number))
    assert.equal((await detail()).health.since, new Date(latest).toISOString())
    assert.equal((await define('downword')).status, 502)
    assert.equal((await detail()).fallback.answering, false)
  })

  it('the history of an API with a fallback source has the states that its callers saw', async () => {
    const changes: [slug: string, minutesAgo: number, from: string, to: string][] = [
      ['dictionary', 2_000, 'Healthy', 'Degraded'],
      ['dictionary', 50, 'Degraded', 'Down'],
      ['dictionary.fallback', 40, 'Degraded', 'Down'],
      ['dictionary.fallback', 30, 'Down', 'Degraded'],
      ['dictionary', 20, 'Down', 'Degraded'],
      ['dictionary.fallback', 10, 'Degraded', 'Down'],
    ]
    for (const [slug, minutesAgo, from, to] of changes)
      await sql(
        gateway,
        `insert into health_changes values ($1, $2::int::text, now() - make_interval(mins => $2), $3, $4, 'score', '{"score": 50}')`,
        [slug, minutesAgo, from, to],
      )
    // Details of an API are cached for a second.
    await until(async () => (await detail()).health.lastChange !== null)
    const { history, lastChange } = (await detail()).health
    assert.deepEqual(
      history.map(({ from, to }: { from: string; to: string }) => `${from} to ${to}`),
      ['Down to Degraded', 'Degraded to Down'],
    )
    assert.deepEqual(lastChange, history[0])
  })

  it('a fallback source answers within the deadline of the call when the first one hangs', async () => {
    hang(FIRST)
    answerSecond()
    const answer = await define('hanging')
    assert.equal(answer.status, 200, answer.text)
  })

  it('a fallback source answers for as long as the first limits the gateway, and the catalog says so', async () => {
    const limit = { 'retry-after': '60' }
    upstream.play(FIRST, (_arrival, response) => void response.writeHead(429, limit).end('{}'))
    const arrived = countOf(FIRST)
    for (const word of ['limited', 'closed', 'shut']) {
      const answer = await define(word)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(source(answer.headers.get('link')), 'freedictionaryapi.com')
    }
    assert.equal(countOf(FIRST) - arrived, 1)
    await until(async () => (await detail()).fallback.answering)
    assert.match(
      (await detail()).health.meanwhile,
      /^The source limits this gateway until .* goes to freedictionaryapi\.com\.$/,
    )
    const raw = await define('rawlimited', { accept: 'application/vnd.upstream+json' })
    assert.equal(raw.body.error.code, 'UPSTREAM_RATE_LIMITED')
    // The next test has an open cap.
    await redis.hdel(capKeys.of('dictionary', SHARED_BUCKET, 'state'), 'closed')
  })

  it("a fallback source's cap is exact, whatever the first one fails", async () => {
    failWith(FIRST, 500)
    answerSecond()
    const arrived = countOf(SECOND)
    const answers = await Promise.all(Array.from({ length: 45 }, (_, index) => define(`cap${index}`)))
    for (let index = 45; index < 130; index += 5) {
      answers.push(...(await Promise.all([0, 1, 2, 3, 4].map((more) => define(`cap${index + more}`)))))
    }
    assert.ok(countOf(SECOND) <= 100, `${countOf(SECOND)} requests`)
    assert.ok(countOf(SECOND) - arrived > 20)
    assert.ok(answers.some(({ status }) => status !== 200))
    for (const { status } of answers) assert.ok(status === 200 || status === 502 || status === 503, `${status}`)
  })
})
