import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { authFailed, failed, invalid, notFound, overLimit } from '../../src/catalog/response-class.ts'
import type { UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import codeHostUser from '../../src/upstreams/code-host-user.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const profile = codeHostUser.endpoints['/profile'] as Endpoint
const recorded = profile.example.response as Record<string, unknown>

function interpret(answer: Partial<UpstreamResponse>, hasKey = false) {
  const answers = [{ status: 200, headers: {}, body: undefined, ...answer }]
  return interpretAnswers({ upstream: codeHostUser, endpoint: profile, hasKey }, answers, {
    parameters: { username: 'jacquev6' },
    context: { now: Date.now() },
  })
}

function interpretData(changes: Record<string, unknown>) {
  const result = interpret({ body: { ...recorded, ...changes } })
  assert.ok('data' in result)
  return result.data
}

test('the recorded profile maps to the recorded data', () => {
  assert.deepEqual(interpret({ body: recorded }), { data: profile.example.data })
})

test('an unknown username is UPSTREAM_NOT_FOUND', () => {
  for (const page of [
    'rest/users/users#get-a-user',
    'rest/reference/users#get-a-user',
    'v3/users/#get-a-single-user',
  ]) {
    const body = { message: 'Not Found', documentation_url: `https://docs.github.com/${page}`, status: '404' }
    assert.deepEqual(interpret({ status: 404, body }), { responseClass: notFound() })
  }
})

test('an unknown route is UPSTREAM_ERROR', () => {
  const body = { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' }
  assert.deepEqual(interpret({ status: 404, body }), { responseClass: failed() })
  assert.deepEqual(interpret({ status: 404, body: { message: 'Not Found' } }), { responseClass: failed() })
})

test('a 403 with nothing remaining is UPSTREAM_RATE_LIMITED until the reset that it names', () => {
  const reset = Math.ceil(Date.now() / 1_000) + 600
  const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) }
  const body = { message: 'API rate limit exceeded for 192.0.2.1.' }
  const result = interpret({ status: 403, headers, body })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  const waitMs = result.responseClass.retryAfterMs ?? 0
  assert.ok(waitMs > 590_000 && waitMs <= 601_000, `${waitMs}`)
})

test('a 429 with nothing remaining is UPSTREAM_RATE_LIMITED too', () => {
  const headers = { 'x-ratelimit-remaining': '0' }
  assert.deepEqual(interpret({ status: 429, headers, body: {} }), { responseClass: overLimit() })
})

test('a secondary limit with requests remaining that names no time lasts a minute, and does not count as a refused key', () => {
  const headers = { 'x-ratelimit-remaining': '42', 'gh-limited-by': 'search-elapsed-time-shared-grouped' }
  const message = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again'
  for (const status of [403, 429]) {
    assert.deepEqual(interpret({ status, headers, body: {} }), { responseClass: overLimit(60_000) })
    assert.deepEqual(interpret({ status, body: { message } }), { responseClass: overLimit(60_000) })
  }
})

test('the abuse detection of older servers is a limit that lasts as long as its Retry-After says', () => {
  const message = 'You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.'
  assert.deepEqual(interpret({ status: 403, body: { message } }), { responseClass: overLimit(60_000) })
  const headers = { 'retry-after': '90' }
  assert.deepEqual(interpret({ status: 403, headers, body: { message } }), { responseClass: overLimit(90_000) })
})

test('the answer to a wrong token is UPSTREAM_AUTH_FAILED, and without a token UPSTREAM_ERROR', () => {
  const body = { message: 'Bad credentials', documentation_url: 'https://developer.github.com/v3' }
  assert.deepEqual(interpret({ status: 401, body }, true), { responseClass: authFailed() })
  assert.deepEqual(interpret({ status: 401, body }), { responseClass: failed() })
})

test('a 403 that is no limit, as for a missing User-Agent, is a failure without a key', () => {
  const headers = { 'x-ratelimit-remaining': '59' }
  assert.deepEqual(interpret({ status: 403, headers }), { responseClass: failed() })
  assert.deepEqual(interpret({ status: 403, headers }, true), { responseClass: authFailed() })
})

test('a 5xx of the upstream is UPSTREAM_ERROR', () => {
  assert.deepEqual(interpret({ status: 502 }), { responseClass: failed() })
})

test('a 200 without a login is not a profile', () => {
  for (const body of [{}, [], 'profile', null, { login: 7 }]) {
    assert.deepEqual(interpret({ body }), { responseClass: invalid() })
  }
})

test('an organization has the same members as a user and another type', () => {
  assert.equal(interpretData({ type: 'Organization', user_view_type: 'public' }).type, 'Organization')
})

test('members that the account has left empty are null', () => {
  const nothing = { name: null, bio: null, company: null, location: null, twitter_username: null, hireable: null }
  const data = interpretData({ ...nothing, email: undefined })
  for (const name of [...Object.keys(nothing), 'email']) assert.equal(data[name], null, name)
})

test('an empty blog is null, and blanks after a company are removed', () => {
  const data = interpretData({ blog: '', company: '@launchableinc ' })
  assert.equal(data.blog, null)
  assert.equal(data.company, '@launchableinc')
})

test('the brackets of a bot are percent-encoded in the path', () => {
  assert.deepEqual(profile.request({ username: 'dependabot[bot]' }, { now: 0 }), {
    path: '/users/dependabot%5Bbot%5D',
  })
})

test('only account names pass the schema', () => {
  const accepts = Compile(profile.parameters)
  for (const username of ['octocat', 'a-b', 'user_corp', 'dependabot[bot]']) assert.ok(accepts.Check({ username }))
  for (const username of ['', 'a/b', '..', 'a b', '[bot]', 'a[bot]b', 'x'.repeat(45)]) {
    assert.ok(!accepts.Check({ username }), username)
  }
})

test('names in another letter case share a stored answer', () => {
  assert.deepEqual(profile.cache?.key?.({ username: 'OctoCat' }), profile.cache?.key?.({ username: 'octocat' }))
})

test('a 404 is stored too, because a request for it uses the limit of 60 an hour', () => {
  assert.equal(profile.cache?.notFoundSeconds, 300)
})

test('scheduled probes use few requests of the hourly limit', () => {
  assert.ok(3_600 / codeHostUser.probe.everySeconds <= 2)
})

test('a key is sent as a bearer token', () => {
  assert.equal(codeHostUser.credential?.name, 'authorization')
  assert.equal(codeHostUser.credential?.format?.('abc'), 'Bearer abc')
})

// In quadratic time this would take minutes.
test('a long address of the documentation is read in linear time', () => {
  const body = { documentation_url: 'users'.repeat(40_000) }
  assert.deepEqual(interpret({ status: 404, body }), { responseClass: failed() })
})
