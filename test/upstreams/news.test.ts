import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import news from '../../src/upstreams/news.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const top = news.endpoints['/top'] ?? assert.fail()
const search = news.endpoints['/search'] ?? assert.fail()
const context = { now: 0 }

function classOf(status: number, body: unknown, headers: Record<string, string> = {}, endpoint = search) {
  const result = interpretAnswers({ upstream: news, endpoint, hasKey: true }, [{ status, headers, body }], {
    parameters: withDefaults(endpoint, { q: 'google', max: 5 }),
    context,
  })
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [top, search]) {
    const { parameters, response, data } = endpoint.example
    const answers = [{ status: 200, headers: {}, body: response }]
    assert.deepEqual(
      interpretAnswers({ upstream: news, endpoint }, answers, {
        parameters: withDefaults(endpoint, parameters),
        context,
      }),
      { data },
    )
  }
})

test('headlines are requested with category, language and number, whatever the defaults of the upstream', () => {
  const parameters = top.complete?.(withDefaults(top, {}), context) ?? {}
  assert.deepEqual(top.request(withDefaults(top, parameters), context), {
    path: '/api/v4/top-headlines',
    query: { category: 'general', lang: 'en', max: 5 },
  })
  assert.deepEqual(top.request(withDefaults(top, top.example.parameters), context), {
    path: '/api/v4/top-headlines',
    query: { category: 'general', lang: 'ru', max: 10 },
  })
})

test('a search is requested in English with the number of articles', () => {
  const parameters = search.complete?.(withDefaults(search, { q: '  google ' }), context) ?? {}
  assert.deepEqual(search.request(withDefaults(search, parameters), context), {
    path: '/api/v4/search',
    query: { q: 'google', lang: 'en', max: 5 },
  })
  assert.deepEqual(search.request(withDefaults(search, search.example.parameters), context), {
    path: '/api/v4/search',
    query: { q: 'google', lang: 'en', max: 10 },
  })
})

test('more than 10 articles are refused, because the free plan caps them', () => {
  for (const endpoint of [top, search]) {
    assert.ok(Value.Check(endpoint.parameters, { q: 'x', max: 10 }))
    for (const max of [0, 11, 2.5]) assert.ok(!Value.Check(endpoint.parameters, { q: 'x', max }))
  }
})

test('a language is two letters in any case, a category one of nine', () => {
  assert.equal(top.complete?.(withDefaults(top, { lang: 'DE' }), context).lang, 'de')
  for (const lang of ['', 'eng', 'e1']) assert.ok(!Value.Check(top.parameters, { lang }))
  assert.ok(Value.Check(top.parameters, { category: 'health' }))
  assert.ok(!Value.Check(top.parameters, { category: 'politics' }))
})

test('a blank query is refused before the request', () => {
  assert.throws(() => search.complete?.(withDefaults(search, { q: '   ' }), context), InvalidParameter)
  assert.ok(!Value.Check(search.parameters, { q: '' }))
  assert.ok(!Value.Check(search.parameters, {}))
})

test('the answer to a missing or wrong key is UPSTREAM_AUTH_FAILED', () => {
  assert.equal(classOf(401, { errors: ['Your API key is invalid.'] }).code, 'UPSTREAM_AUTH_FAILED')
})

test('403 means that the quota is used up until 00:00 UTC, and not that the key is refused', () => {
  const responseClass = classOf(403, { errors: ['quota'] }, { date: 'Tue, 03 Nov 2026 22:30:00 GMT' })
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 5_400_000)
})

test('a used-up quota without a date is UPSTREAM_RATE_LIMITED without a time', () => {
  const responseClass = classOf(403, { errors: ['quota'] })
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, undefined)
})

test('429 without Retry-After closes the cap for some seconds', () => {
  const responseClass = classOf(429, { errors: ['too many requests in a short period of time'] })
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 5_000)
  assert.equal(classOf(429, undefined, { 'retry-after': '30' }).retryAfterMs, 30_000)
})

test('errors by parameter are UPSTREAM_REJECTED, with a hint about the syntax of the query', () => {
  const responseClass = classOf(400, { errors: { q: 'The query has a syntax error.' } })
  assert.equal(responseClass.code, 'UPSTREAM_REJECTED')
  assert.match(responseClass.message ?? '', /syntax of q/)
})

test('errors in a list or about another parameter are UPSTREAM_REJECTED without this hint', () => {
  for (const errors of [['general'], { lang: 'unsupported' }]) {
    const responseClass = classOf(400, { errors })
    assert.equal(responseClass.code, 'UPSTREAM_REJECTED')
    assert.equal(responseClass.message, undefined)
  }
})

test('the answer to a language that the upstream does not have is UPSTREAM_REJECTED, and no failure', () => {
  const responseClass = classOf(400, { errors: { lang: 'The lang is invalid.' } }, {}, top)
  assert.equal(responseClass.code, 'UPSTREAM_REJECTED')
  assert.match(responseClass.message ?? '', /language/)
  for (const errors of [['general'], { category: 'invalid' }])
    assert.equal(classOf(400, { errors }, {}, top).code, 'UPSTREAM_ERROR')
})

test('a failure or maintenance of the upstream is its error', () => {
  assert.equal(classOf(500, undefined).code, 'UPSTREAM_ERROR')
  assert.equal(classOf(503, undefined).code, 'UPSTREAM_ERROR')
})

test('no matching article is a success with an empty list', () => {
  const answers = [{ status: 200, headers: {}, body: { totalArticles: 0, articles: [] } }]
  assert.deepEqual(
    interpretAnswers({ upstream: news, endpoint: search }, answers, {
      parameters: withDefaults(search, { q: 'x' }),
      context,
    }),
    { data: { total: 0, articles: [] } },
  )
})

test('an answer without a list of articles is invalid', () => {
  for (const body of [{}, { articles: null }, [], undefined])
    assert.equal(classOf(200, body).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('total is the number of matches, not of articles, and members that older answers lack are null', () => {
  const body = {
    totalArticles: 7,
    articles: [{ title: 'One', source: { name: 'Paper', url: 'https://paper.example' } }, null],
  }
  const result = interpretAnswers({ upstream: news, endpoint: search }, [{ status: 200, headers: {}, body }], {
    parameters: withDefaults(search, { q: 'x' }),
    context,
  })
  assert.ok('data' in result)
  assert.equal(result.data.total, 7)
  assert.deepEqual(result.data.articles, [
    {
      id: null,
      title: 'One',
      description: null,
      content: null,
      url: null,
      image: null,
      published_at: null,
      lang: null,
      source: { id: null, name: 'Paper', url: 'https://paper.example', country: null },
    },
  ])
})

test('a caller cannot send a key under any other name', () => {
  assert.ok(news.reservedParameters?.includes('token'))
  assert.equal(news.credential?.name, 'apikey')
  assert.equal(news.credential?.required, true)
})

test("a caller's own key has the caps of the gateway's key", () => {
  assert.deepEqual(news.credential?.caps, news.caps)
})

test('without a category the general headlines are requested, although the parameter declares no default', () => {
  assert.equal(Reflect.get(top.parameters.properties.category ?? {}, 'default'), undefined)
  assert.equal(top.complete?.(withDefaults(top, {}), context).category, 'general')
})

test('news of today are stored for a quarter of an hour, and news that are half a day old for an hour', () => {
  const now = Date.parse('2025-09-21T12:00:00Z')
  const of = (...times: (string | null)[]) => {
    const seconds = top.cache?.seconds
    assert.ok(typeof seconds === 'function')
    return seconds({}, { articles: times.map((published_at) => ({ published_at })) }, { now })
  }
  assert.equal(of('2025-09-21T11:30:00Z', '2025-09-20T00:00:00Z'), 900)
  assert.equal(of('2025-09-20T23:59:00Z', '2025-09-20T00:00:00Z'), 3_600)
  assert.deepEqual([of(), of(null)], [900, 900])
})

test('the address of a picture that is relative to its article is written out', () => {
  const article = { url: 'https://a.example/news/b', image: '/c.png' }
  const body = { totalArticles: 1, articles: [article, { ...article, url: null, image: '//a.example/d.png' }] }
  const result = interpretAnswers(
    { upstream: news, endpoint: search, hasKey: true },
    [{ status: 200, headers: {}, body }],
    {
      parameters: withDefaults(search, { q: 'google', max: 5 }),
      context,
    },
  )
  const articles = ('data' in result ? result.data.articles : assert.fail()) as { image: string }[]
  assert.deepEqual(
    articles.map(({ image }) => image),
    ['https://a.example/c.png', 'https://a.example/d.png'],
  )
})
