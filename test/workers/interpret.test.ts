import assert from 'node:assert/strict'
import { test } from 'node:test'
import Type from 'typebox'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { members, text } from '../../src/catalog/json.ts'
import { parseKeepingDigits } from '../../src/catalog/long-numbers.ts'
import { authFailed, failed, notFound, overLimit, ResponseClass, rejected } from '../../src/catalog/response-class.ts'
import type { RateHeaders, Upstream } from '../../src/catalog/upstream.ts'
import { path, type UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import { ERRORS } from '../../src/errors.ts'
import { type AnsweredRequest, classifyResponse, interpretAnswers } from '../../workers/upstream/interpret.ts'
import { rateLeft, requestedWaitMs } from '../../workers/upstream/rate-headers.ts'

const epochSeconds: RateHeaders = { remaining: 'x-left', reset: 'x-reset', resetIs: 'epoch-seconds' }
const seconds: RateHeaders = { remaining: 'x-left', reset: 'x-reset', resetIs: 'seconds' }
const ofSearches: RateHeaders = { ...seconds, appliesWhen: { header: 'x-resource', value: 'search' } }

/** An upstream that leaves everything to the default rules. */
function plain(rateHeaders?: RateHeaders): Upstream {
  return {
    displayName: 'Plain',
    category: 'test',
    description: 'An upstream without rules of its own.',
    tags: [],
    tierRequired: 'developer',
    terms: { summary: 'None.' },
    baseUrl: 'https://plain.example',
    caps: { concurrency: 1, rates: [] },
    ...(rateHeaders ? { rateHeaders } : {}),
    probe: { request: { path: path`/` }, everySeconds: 60 },
    endpoints: { '/thing': thing },
  }
}

const thing: Endpoint = {
  description: 'A thing.',
  parameters: Type.Object({}),
  data: Type.Object({ name: Type.String() }),
  request: () => ({ path: path`/thing` }),
  map: ({ body }) => {
    const { name, isMissing } = members(body)
    if (isMissing === true) return notFound()
    return { name: name as string, ...(name === 'throw' ? { name: thrown() } : {}) }
  },
  example: { parameters: {}, response: { name: 'x' }, data: { name: 'x' } },
}

function thrown(): never {
  throw new TypeError('the mapping failed')
}

const NOW = Date.parse('2026-10-15T12:00:00Z')
/** For an answer to a request with a key. */
const codeOf = (answer: Partial<UpstreamResponse>, upstream = plain()) => codeOfSent({ upstream, hasKey: true }, answer)
const codeOfSent = (sent: Partial<AnsweredRequest>, answer: Partial<UpstreamResponse>) => {
  const whole = { status: 200, headers: {}, body: {}, ...answer }
  return classifyResponse({ upstream: plain(), endpoint: thing, ...sent }, whole)?.code
}

const statusRows: [what: string, answer: Partial<UpstreamResponse>, code: string | undefined][] = [
  ['200 with JSON is mapped', { status: 200 }, undefined],
  ['201 with JSON is mapped', { status: 201 }, undefined],
  ['202 with JSON is mapped', { status: 202 }, undefined],
  ['299 with JSON is mapped', { status: 299 }, undefined],
  ['JSON null is a body', { status: 200, body: null }, undefined],
  ['200 without JSON cannot be used', { status: 200, body: undefined }, 'UPSTREAM_INVALID_RESPONSE'],
  ['204 cannot be used', { status: 204, body: undefined }, 'UPSTREAM_INVALID_RESPONSE'],
  ['205 cannot be used, with a body neither', { status: 205 }, 'UPSTREAM_INVALID_RESPONSE'],
  ['206, a part of an answer, cannot be used', { status: 206 }, 'UPSTREAM_INVALID_RESPONSE'],
  ['101 cannot be used', { status: 101 }, 'UPSTREAM_INVALID_RESPONSE'],
  ['304, which was not asked for, cannot be used', { status: 304 }, 'UPSTREAM_INVALID_RESPONSE'],
  ['304 with a location neither', { status: 304, headers: { location: '/x' } }, 'UPSTREAM_INVALID_RESPONSE'],
  ['300 without a location leads nowhere', { status: 300 }, 'UPSTREAM_INVALID_RESPONSE'],
  ['302 without a location leads nowhere', { status: 302 }, 'UPSTREAM_INVALID_RESPONSE'],
  ...[301, 302, 303, 307, 308].map((status): (typeof statusRows)[number] => [
    `${status} with a location is a redirect not followed`,
    { status, headers: { location: 'https://elsewhere.example/' } },
    'UPSTREAM_REDIRECT_BLOCKED',
  ]),
  ['401 refuses the key', { status: 401 }, 'UPSTREAM_AUTH_FAILED'],
  [
    '401 with nothing remaining still refuses the key',
    { status: 401, headers: { 'x-ratelimit-remaining': '0' } },
    'UPSTREAM_AUTH_FAILED',
  ],
  ['403 refuses the key', { status: 403 }, 'UPSTREAM_AUTH_FAILED'],
  [
    '403 with requests remaining refuses the key',
    { status: 403, headers: { 'x-ratelimit-remaining': '7' } },
    'UPSTREAM_AUTH_FAILED',
  ],
  ['403 with Retry-After is over the limit', { status: 403, headers: { 'retry-after': '9' } }, 'UPSTREAM_RATE_LIMITED'],
  [
    '403 with nothing remaining is over the limit',
    { status: 403, headers: { 'x-ratelimit-remaining': ' 0 ' } },
    'UPSTREAM_RATE_LIMITED',
  ],
  ['429 is over the limit', { status: 429 }, 'UPSTREAM_RATE_LIMITED'],
  ['402 refuses the key', { status: 402 }, 'UPSTREAM_AUTH_FAILED'],
  ...[400, 404, 405, 406, 408, 409, 410, 413, 414, 418, 422, 431, 451, 499].map(
    (status): (typeof statusRows)[number] => [`${status} to checked values is a failure`, { status }, 'UPSTREAM_ERROR'],
  ),
  ...[500, 501, 502, 503, 504, 522, 599].map((status): (typeof statusRows)[number] => [
    `${status} is a failure`,
    { status },
    'UPSTREAM_ERROR',
  ]),
  [
    '503 with Retry-After is a failure, not a limit',
    { status: 503, headers: { 'retry-after': '9' } },
    'UPSTREAM_ERROR',
  ],
]

for (const [what, answer, code] of statusRows) {
  test(what, () => assert.equal(codeOf(answer), code))
}

test('an answer is mapped whatever its status if the endpoint accepts this status', () => {
  const accepting = { ...thing, acceptStatuses: [204, 404] }
  for (const status of [204, 404]) {
    assert.equal(
      classifyResponse({ upstream: plain(), endpoint: accepting }, { status, headers: {}, body: undefined }),
      undefined,
    )
  }
  assert.equal(
    classifyResponse({ upstream: plain(), endpoint: accepting }, { status: 410, headers: {}, body: undefined })?.code,
    'UPSTREAM_ERROR',
  )
})

test('404 and 410 mean "not found" if the endpoint looks something up and the body says so', () => {
  const lookUp = { ...thing, isNotFound: ({ body }: UpstreamResponse) => members(body).error === 'unknown thing' }
  for (const status of [404, 410]) {
    const codeWith = (body: unknown) => codeOfSent({ endpoint: lookUp }, { status, body })
    assert.equal(codeWith({ error: 'unknown thing' }), 'UPSTREAM_NOT_FOUND')
    for (const body of [undefined, null, {}, { error: 'Not Found' }]) assert.equal(codeWith(body), 'UPSTREAM_ERROR')
  }
  assert.equal(codeOfSent({ endpoint: lookUp }, { status: 400, body: { error: 'unknown thing' } }), 'UPSTREAM_ERROR')
})

test('a status is a refusal of the caller’s values only if the endpoint names it', () => {
  const judged = { ...thing, rejects: [422] }
  assert.equal(codeOfSent({ endpoint: judged }, { status: 422 }), 'UPSTREAM_REJECTED')
  assert.equal(codeOfSent({ endpoint: judged }, { status: 400 }), 'UPSTREAM_ERROR')
})

test('every 4xx to a call with undeclared parameters counts as caused by what its caller sent', () => {
  const codeWith = (status: number) => codeOfSent({ hasUndeclared: true }, { status, body: undefined })
  assert.deepEqual([404, 410].map(codeWith), ['UPSTREAM_NOT_FOUND', 'UPSTREAM_NOT_FOUND'])
  assert.deepEqual([400, 405, 422, 451].map(codeWith), Array(4).fill('UPSTREAM_REJECTED'))
  assert.deepEqual([401, 402, 403, 407].map(codeWith), Array(4).fill('UPSTREAM_AUTH_FAILED'))
})

test('408 and 425 are failures that may be temporary, even if a caller added parameters', () => {
  for (const status of [408, 425])
    assert.equal(
      codeOfSent({ hasUndeclared: true, endpoint: { ...thing, rejects: [status] } }, { status }),
      'UPSTREAM_ERROR',
    )
})

test('an answer that refuses the key is a failure of the source if no key was sent', () => {
  const strict: Upstream = { ...plain(), classify: ({ body }) => (body === 'no key' ? authFailed() : undefined) }
  for (const status of [401, 402, 403, 407]) assert.equal(codeOfSent({}, { status }), 'UPSTREAM_ERROR')
  assert.equal(codeOfSent({ upstream: strict }, { body: 'no key' }), 'UPSTREAM_ERROR')
  assert.equal(codeOfSent({ upstream: strict, hasKey: true }, { body: 'no key' }), 'UPSTREAM_AUTH_FAILED')
})

test('a 4xx to a probe is no refusal of values, because a probe has no caller', () => {
  for (const status of [400, 404, 410, 422])
    assert.equal(codeOfSent({ endpoint: undefined }, { status }), 'UPSTREAM_ERROR')
})

test('the rules of the endpoint come before the rules of its upstream, and both before the status', () => {
  const strict: Upstream = { ...plain(), classify: ({ body }) => (text(body) === 'bad' ? failed() : undefined) }
  const stricter = { ...thing, classify: ({ body }: UpstreamResponse) => (body === 'bad' ? rejected() : undefined) }
  const answer = { status: 200, headers: {}, body: 'bad' }
  assert.deepEqual(classifyResponse({ upstream: strict, endpoint: stricter }, answer), rejected())
  assert.deepEqual(classifyResponse({ upstream: strict, endpoint: thing }, answer), failed())
  assert.deepEqual(classifyResponse({ upstream: strict, endpoint: undefined }, answer), failed())
  assert.equal(classifyResponse({ upstream: strict, endpoint: thing }, { ...answer, body: 'good' }), undefined)
})

const waitRows: [
  what: string,
  headers: Record<string, string>,
  rateHeaders: RateHeaders | undefined,
  ms: number | undefined,
][] = [
  ['seconds', { 'retry-after': '30' }, undefined, 30_000],
  ['seconds between blanks', { 'retry-after': ' 30 ' }, undefined, 30_000],
  ['0 seconds: at least one', { 'retry-after': '0' }, undefined, 1_000],
  ['a day in seconds: at most an hour', { 'retry-after': '86400' }, undefined, 3_600_000],
  ['more digits than a number holds: at most an hour', { 'retry-after': '9'.repeat(400) }, undefined, 3_600_000],
  ['an HTTP date', { 'retry-after': 'Thu, 15 Oct 2026 12:02:00 GMT' }, undefined, 120_000],
  ['a date in the past: at least a second', { 'retry-after': 'Thu, 15 Oct 2026 11:00:00 GMT' }, undefined, 1_000],
  ['a date next year: at most an hour', { 'retry-after': 'Fri, 15 Oct 2027 12:00:00 GMT' }, undefined, 3_600_000],
  [
    'an HTTP date of an upstream whose clock is ten minutes behind',
    { date: 'Thu, 15 Oct 2026 11:50:00 GMT', 'retry-after': 'Thu, 15 Oct 2026 11:52:00 GMT' },
    undefined,
    120_000,
  ],
  [
    'an HTTP date in an answer that a cache held for half a minute',
    { date: 'Thu, 15 Oct 2026 11:59:30 GMT', age: '30', 'retry-after': 'Thu, 15 Oct 2026 12:02:00 GMT' },
    undefined,
    120_000,
  ],
  [
    'the time of the reset of an upstream whose clock is ten minutes ahead',
    { date: 'Thu, 15 Oct 2026 12:10:00 GMT', 'x-left': '0', 'x-reset': String(NOW / 1_000 + 650) },
    epochSeconds,
    50_000,
  ],
  [
    'an HTTP date beside a date that is none',
    { date: 'x', 'retry-after': 'Thu, 15 Oct 2026 12:02:00 GMT' },
    undefined,
    120_000,
  ],
  ['nothing', {}, undefined, undefined],
  ['a word', { 'retry-after': 'soon' }, undefined, undefined],
  ['a date that is none', { 'retry-after': 'Thu, 99 Foo 2026' }, undefined, undefined],
  ['an empty header', { 'retry-after': '' }, undefined, undefined],
  ['negative seconds, which are none', { 'retry-after': '-5' }, undefined, undefined],
  ['a fraction', { 'retry-after': '1.5' }, undefined, 1_500],
  ['the header twice: the longer wait', { 'retry-after': '7, 5' }, undefined, 7_000],
  ['seconds to the reset', { 'x-left': '0', 'x-reset': '40' }, seconds, 40_000],
  ['the time of the reset', { 'x-left': '0', 'x-reset': String(NOW / 1_000 + 50) }, epochSeconds, 50_000],
  [
    'a reset in the past: at least a second',
    { 'x-left': '0', 'x-reset': String(NOW / 1_000 - 50) },
    epochSeconds,
    1_000,
  ],
  ['a reset in years: at most an hour', { 'x-left': '0', 'x-reset': '99999999999' }, epochSeconds, 3_600_000],
  ['Retry-After goes before the reset', { 'retry-after': '5', 'x-left': '0', 'x-reset': '40' }, seconds, 5_000],
  [
    'an unreadable Retry-After leaves it to the reset',
    { 'retry-after': 'soon', 'x-left': '0', 'x-reset': '40' },
    seconds,
    40_000,
  ],
  ['with requests left the reset says nothing', { 'x-left': '3', 'x-reset': '40' }, seconds, undefined],
  ['a reset that is no number', { 'x-left': '0', 'x-reset': 'soon' }, seconds, undefined],
  ['an empty reset is not the year 1970', { 'x-left': '0', 'x-reset': '' }, epochSeconds, undefined],
  ['no reset', { 'x-left': '0' }, seconds, undefined],
  ['the reset of another limit', { 'x-left': '0', 'x-reset': '40', 'x-resource': 'core' }, ofSearches, undefined],
  ['the reset of our limit', { 'x-left': '0', 'x-reset': '40', 'x-resource': 'search' }, ofSearches, 40_000],
]

for (const [what, headers, rateHeaders, ms] of waitRows) {
  test(`the wait asked for by ${what} is ${ms === undefined ? 'not known' : `${ms} ms`}`, () => {
    assert.equal(requestedWaitMs(plain(rateHeaders), headers, NOW), ms)
  })
}

test('an answer over the limit carries the wait that the upstream requests', () => {
  const responseClass = classifyResponse(
    { upstream: plain(), endpoint: thing },
    {
      status: 429,
      headers: { 'retry-after': '12' },
      body: undefined,
    },
  )
  assert.equal(responseClass?.retryAfterMs, 12_000)
  assert.equal(
    classifyResponse({ upstream: plain(), endpoint: thing }, { status: 429, headers: {}, body: {} })?.retryAfterMs,
    undefined,
  )
})

test('a 403 refuses the key although the headers of another limit say that nothing remains', () => {
  const own = { 'x-left': '0', 'x-resource': 'search' }
  assert.equal(codeOf({ status: 403, headers: own }, plain(ofSearches)), 'UPSTREAM_RATE_LIMITED')
  assert.equal(codeOf({ status: 403, headers: { 'x-left': '0' } }, plain(ofSearches)), 'UPSTREAM_RATE_LIMITED')
  assert.equal(
    codeOf({ status: 403, headers: { ...own, 'x-resource': 'core' } }, plain(ofSearches)),
    'UPSTREAM_AUTH_FAILED',
  )
  // Retry-After is about this very answer.
  const told = { ...own, 'x-resource': 'core', 'retry-after': '5' }
  assert.equal(codeOf({ status: 403, headers: told }, plain(ofSearches)), 'UPSTREAM_RATE_LIMITED')
})

test('the headers of any answer say how many requests are left if both headers are there', () => {
  const left = (headers: Record<string, string>, rateHeaders?: RateHeaders) =>
    rateLeft(plain(rateHeaders), headers, NOW)
  assert.deepEqual(left({ 'x-left': '41', 'x-reset': '7' }, seconds), { remaining: 41, resetMs: 7_000 })
  assert.deepEqual(left({ 'x-left': ' 0 ', 'x-reset': '0' }, seconds), { remaining: 0, resetMs: 0 })
  const reset = String(NOW / 1_000 + 90)
  assert.deepEqual(left({ 'x-left': '5', 'x-reset': reset }, epochSeconds), { remaining: 5, resetMs: 90_000 })
  assert.equal(left({ 'x-left': '5' }, seconds), undefined)
  assert.equal(left({ 'x-reset': '7' }, seconds), undefined)
  assert.equal(left({}, seconds), undefined)
  assert.equal(left({ 'x-left': '5', 'x-reset': '7' }), undefined, 'the upstream declares no such headers')
})

test('how many requests are left of another limit is ignored', () => {
  const headers = { 'x-left': '5', 'x-reset': '7' }
  const left = { remaining: 5, resetMs: 7_000 }
  assert.deepEqual(rateLeft(plain(ofSearches), { ...headers, 'x-resource': 'search' }, NOW), left)
  assert.deepEqual(rateLeft(plain(ofSearches), headers, NOW), left)
  assert.equal(rateLeft(plain(ofSearches), { ...headers, 'x-resource': 'core' }, NOW), undefined)
  assert.equal(rateLeft(plain(ofSearches), { ...headers, 'x-resource': '' }, NOW), undefined)
})

test('a reset in the past or years away counts as 0 or an hour', () => {
  const resetMs = (reset: string, rateHeaders: RateHeaders) =>
    rateLeft(plain(rateHeaders), { 'x-left': '5', 'x-reset': reset }, NOW)?.resetMs
  assert.equal(resetMs('1', epochSeconds), 0)
  assert.equal(resetMs('99999999999', epochSeconds), 3_600_000)
  assert.equal(resetMs('86400', seconds), 3_600_000)
})

test('counts that are not whole numbers are ignored', () => {
  for (const value of ['', ' ', '-1', '1.5', '0x10', 'many', '1, 2', '9'.repeat(16), 'NaN', 'Infinity']) {
    assert.equal(rateLeft(plain(seconds), { 'x-left': value, 'x-reset': '7' }, NOW), undefined, value)
    assert.equal(rateLeft(plain(seconds), { 'x-left': '7', 'x-reset': value }, NOW), undefined, value)
  }
})

function interpret(...answers: Partial<UpstreamResponse>[]) {
  const whole = answers.map((answer) => ({ status: 200, headers: {}, body: { name: 'x' }, ...answer }))
  return interpretAnswers({ upstream: plain(), endpoint: thing }, whole, { parameters: {}, context: { now: NOW } })
}

test('the outcome of a success is the mapped data', () => {
  assert.deepEqual(interpret({}), { data: { name: 'x' } })
})

test('a responseClass that the mapping returns is the outcome', () => {
  assert.deepEqual(interpret({ body: { isMissing: true } }), { responseClass: notFound() })
})

test('the first answer that is no success decides the outcome of all requests of a call', () => {
  assert.deepEqual(interpret({}, { status: 429 }, { status: 500 }), { responseClass: overLimit() })
})

test('data that do not fit their schema are UPSTREAM_INVALID_RESPONSE, and the log says where', () => {
  const result = interpret({ body: { name: 7 } })
  assert.ok('responseClass' in result && result.responseClass instanceof ResponseClass)
  assert.equal(result.responseClass.code, 'UPSTREAM_INVALID_RESPONSE')
  assert.match(String(result.cause), /\/name/)
})

test('a number that keeps its digits fits as a number, and no other value fits as what JSON makes of it', () => {
  const endpoint: Endpoint = {
    ...thing,
    data: Type.Object({ size: Type.Union([Type.Number(), Type.Null()]) }),
    map: ({ body }) => ({ size: body }),
  }
  const codeOfSize = (body: unknown) => {
    const answer = { status: 200, headers: {}, body }
    const read = interpretAnswers({ upstream: plain(), endpoint }, [answer], { parameters: {}, context: { now: NOW } })
    return 'responseClass' in read ? read.responseClass.code : undefined
  }
  assert.equal(codeOfSize((parseKeepingDigits('[9223372036854775807]') as unknown[])[0]), undefined)
  assert.equal(codeOfSize(Number.NaN), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(codeOfSize({ toJSON: () => 1 }), 'UPSTREAM_INVALID_RESPONSE')
})

test('a number of an answer that a double cannot hold keeps its digits, and all other numbers are doubles', () => {
  for (const number of [
    ...[
      '9007199254740993',
      '-9007199254740993',
      '12345678901234567.89',
      '0.12345678901234567890123',
      '1e400',
      '-1E-400',
    ],
    ...['90071992547409.93123', '9007199254740993e0', '1.2345678901234567e30'],
  ]) {
    for (const text of [number, `[${number}]`, `{"a":${number},"b":[0, ${number} ]}`])
      assert.equal(JSON.stringify(parseKeepingDigits(text)), text.replace(/ /g, ''), text)
  }
  for (const number of ['1', '-0', '1.50', '1e3', '52.520000000000003', '0.16689300537109375', '9007199254740991'])
    assert.deepEqual(parseKeepingDigits(`[${number},"1234567890123456789"]`), [Number(number), '1234567890123456789'])
})

test('a mapping that throws is UPSTREAM_INVALID_RESPONSE, with what it threw as the cause', () => {
  const result = interpret({ body: { name: 'throw' } })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_INVALID_RESPONSE')
  assert.ok(result.cause instanceof TypeError)
})

test('for each endpoint of each API the answer of a moved route is a failure of the source, and never UPSTREAM_NOT_FOUND', async () => {
  const moved: Partial<UpstreamResponse>[] = [
    { status: 404, body: undefined },
    { status: 404, body: undefined, errorText: '<html><h1>Not Found</h1></html>' },
    { status: 404, body: { statusCode: 404, error: 'Not Found', message: 'Cannot GET /x' } },
    { status: 404, body: { message: 'Not Found' } },
    { status: 410, body: undefined },
    { status: 301, body: undefined, headers: { location: 'https://elsewhere.example/' } },
    { status: 405, body: undefined, errorText: 'Method Not Allowed' },
    { status: 403, body: undefined, errorText: 'Forbidden' },
  ]
  for (const [slug, upstream] of await loadUpstreams()) {
    for (const [path, endpoint] of Object.entries(upstream.endpoints)) {
      for (const answer of moved) {
        const call = { parameters: endpoint.example.parameters, context: { now: NOW } }
        const whole = { headers: {}, body: undefined, status: 0, ...answer }
        const read = interpretAnswers({ upstream, endpoint, hasKey: false }, [whole], call)
        const code = 'responseClass' in read ? read.responseClass.code : undefined
        const isLimit = answer.status === 403 && code === 'UPSTREAM_RATE_LIMITED'
        const what = `${slug}${path} ${JSON.stringify(answer)}: ${code}`
        if (!isLimit) assert.equal(code && ERRORS[code].status, 502, what)
      }
    }
  }
})
