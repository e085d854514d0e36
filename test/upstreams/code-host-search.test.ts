import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { authFailed, failed, invalid, overLimit, rejected } from '../../src/catalog/response-class.ts'
import type { UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import codeHostSearch from '../../src/upstreams/code-host-search.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { rateLeft } from '../../workers/upstream/rate-headers.ts'
import { withDefaults } from '../support/upstream-call.ts'

const repos = codeHostSearch.endpoints['/repos'] as Endpoint
const recorded = repos.example.response as { items: Record<string, unknown>[] }

function interpret(answer: Partial<UpstreamResponse>, hasKey = false) {
  const answers = [{ status: 200, headers: {}, body: undefined, ...answer }]
  return interpretAnswers({ upstream: codeHostSearch, endpoint: repos, hasKey }, answers, {
    parameters: withDefaults(repos, { q: 'tetris' }),
    context: { now: Date.now() },
  })
}

function interpretRepository(changes: Record<string, unknown>) {
  const result = interpret({ body: { ...recorded, items: [{ ...recorded.items[0], ...changes }] } })
  assert.ok('data' in result)
  const [repository] = result.data.repositories as Record<string, unknown>[]
  assert.ok(repository)
  return repository
}

test('the recorded search maps to the recorded data', () => {
  assert.deepEqual(interpret({ body: recorded }), { data: repos.example.data })
})

test('no match is a success with an empty list', () => {
  assert.deepEqual(interpret({ body: { total_count: 0, incomplete_results: false, items: [] } }), {
    data: { total_count: 0, incomplete_results: false, repositories: [] },
  })
})

test('a search that ran out of time is a success that says so', () => {
  assert.deepEqual(interpret({ body: { total_count: 123_456, incomplete_results: true, items: [] } }), {
    data: { total_count: 123_456, incomplete_results: true, repositories: [] },
  })
})

test('a missing q, and a q with users or repositories that cannot be searched, are UPSTREAM_REJECTED', () => {
  for (const error of [{ code: 'missing' }, { code: 'invalid', message: 'The listed users cannot be searched' }]) {
    const body = { message: 'Validation Failed', errors: [{ resource: 'Search', field: 'q', ...error }] }
    assert.deepEqual(interpret({ status: 422, body }), { responseClass: rejected() })
  }
})

test('the eleventh search in a minute is UPSTREAM_RATE_LIMITED, although its status is 403', () => {
  const reset = Math.ceil(Date.now() / 1_000) + 30
  const headers = {
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(reset),
    'x-ratelimit-resource': 'search',
  }
  const result = interpret({ status: 403, headers, body: { message: 'API rate limit exceeded for 192.0.2.1.' } })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  const waitMs = result.responseClass.retryAfterMs ?? 0
  assert.ok(waitMs > 20_000 && waitMs <= 31_000, `${waitMs}`)
})

test('headers about the limit of other requests are ignored', () => {
  const reset = String(Math.ceil(Date.now() / 1_000) + 40)
  const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }
  assert.equal(rateLeft(codeHostSearch, { ...headers, 'x-ratelimit-resource': 'core' }), undefined)
  assert.equal(rateLeft(codeHostSearch, { ...headers, 'x-ratelimit-resource': 'search' })?.remaining, 0)
})

test('a secondary limit that names no time lasts a minute, and does not count as a refused key', () => {
  const headers = { 'x-ratelimit-remaining': '7', 'gh-limited-by': 'search-elapsed-time-shared-grouped' }
  assert.deepEqual(interpret({ status: 403, headers, body: {} }), { responseClass: overLimit(60_000) })
  const body = { message: 'You have exceeded a secondary rate limit.' }
  assert.deepEqual(interpret({ status: 429, body }), { responseClass: overLimit(60_000) })
  const asked = { ...headers, 'retry-after': '5' }
  assert.deepEqual(interpret({ status: 403, headers: asked, body }), { responseClass: overLimit(5_000) })
})

test('a search back end that is down is UPSTREAM_ERROR', () => {
  assert.deepEqual(interpret({ status: 503 }), { responseClass: failed() })
})

test('the answer to a wrong token is UPSTREAM_AUTH_FAILED, and without a token UPSTREAM_ERROR', () => {
  const answer = { status: 401, body: { message: 'Bad credentials' } }
  assert.deepEqual(interpret(answer, true), { responseClass: authFailed() })
  assert.deepEqual(interpret(answer), { responseClass: failed() })
})

test('a 200 without items is not an empty search', () => {
  for (const body of [{}, [], null, { total_count: 0, items: null }]) {
    assert.deepEqual(interpret({ body }), { responseClass: invalid() })
  }
})

test('topics that an older server leaves out are an empty list', () => {
  assert.deepEqual(interpretRepository({ topics: undefined }).topics, [])
  assert.deepEqual(interpretRepository({ topics: ['java', 'test'] }).topics, ['java', 'test'])
})

test('a license is its SPDX id, or null if there is no license', () => {
  assert.equal(interpretRepository({ license: null }).license, null)
  assert.equal(interpretRepository({ license: { key: 'other', spdx_id: 'NOASSERTION' } }).license, 'NOASSERTION')
})

test('description, language and homepage may be null, and an empty homepage becomes null', () => {
  const repository = interpretRepository({ description: null, language: null, homepage: '' })
  assert.deepEqual([repository.description, repository.language, repository.homepage], [null, null, null])
})

test('members that only newer servers or calls with a key have are left out', () => {
  const newer = { permissions: { admin: false }, has_discussions: true, pull_request_creation_policy: 'all' }
  assert.deepEqual(interpretRepository(newer), interpretRepository({}))
})

test('a relevance score may be a fraction', () => {
  assert.equal(interpretRepository({ score: 12.75 }).score, 12.75)
})

test('per_page is always sent, because the upstream has a default of 30', () => {
  assert.deepEqual(repos.request(withDefaults(repos, { q: 'tetris' }), { now: 0 }), {
    path: '/search/repositories',
    query: { q: 'tetris', per_page: 10 },
  })
})

test('qualifiers and plus signs of q are sent unchanged, and several blanks become a single blank', () => {
  const complete = (q: string) => repos.complete?.(withDefaults(repos, { q, per_page: 3 }), { now: 0 })
  assert.deepEqual(complete('  tetris   language:c++ '), { q: 'tetris language:c++', per_page: 3 })
  assert.throws(() => complete('  '), InvalidParameter)
})

test('per_page is 1 to 30', () => {
  const accepts = Compile(repos.parameters)
  for (const per_page of [1, 30]) assert.ok(accepts.Check({ q: 'x', per_page }))
  for (const per_page of [0, 31, 2.5]) assert.ok(!accepts.Check({ q: 'x', per_page }))
})

test('a key may make 30 calls a minute', () => {
  assert.deepEqual(codeHostSearch.credential?.caps?.rates, [{ max: 30, seconds: 60 }])
})

test('the probe does not search', () => {
  assert.equal(codeHostSearch.probe.request.path, '/rate_limit')
})
