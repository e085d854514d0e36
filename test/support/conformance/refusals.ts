import assert from 'node:assert/strict'
import { rawHttp } from '../raw-http.ts'
import { assertFailure, refuses, type Statement, type World } from './world.ts'

const WEATHER = '/v1/call/weather/current?latitude=1&longitude=2'

/** Sends the bytes of a request that no client library would send. */
async function raw({ gateway, elite }: World, head: string, body = ''): Promise<{ status: number; code: string }> {
  const request = `${head}\r\nHost: gateway\r\nConnection: close\r\nX-Api-Key: ${elite.test}\r\n`
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\nContent-Type: application/json\r\n`
  const answer = await rawHttp(Number(new URL(gateway.url).port), `${request}${length}\r\n${body}`)
  const { code, error } = JSON.parse(answer.body)
  return { status: answer.status, code: code ?? error.code }
}

/** Statements about refusals, and about the order of the checks of a call. */
export const REFUSAL_STATEMENTS: Statement[] = [
  refuses('a call without a credential is 401', () => [WEATHER], 401, 'AUTH_REQUIRED'),
  refuses('a call with a made-up key is 401', () => [WEATHER, { key: 'agw_live_none' }], 401, 'INVALID_API_KEY'),
  {
    says: 'a key with a wrong checksum is answered 401',
    holds: async ({ send, elite }) => {
      const last = elite.live.at(-1) === 'a' ? 'b' : 'a'
      assertFailure(await send(WEATHER, { key: elite.live.slice(0, -1) + last }), 401, 'INVALID_API_KEY')
    },
  },
  {
    says: 'a wrong X-Api-Key is refused even beside a valid bearer token',
    holds: async ({ send, elite }) =>
      assertFailure(await send(WEATHER, { key: 'agw_live_none', token: elite.live }), 401, 'INVALID_API_KEY'),
  },
  refuses(
    'the credential is checked before the API: 401 before 404',
    () => ['/v1/call/nothing/x'],
    401,
    'AUTH_REQUIRED',
  ),
  refuses('an unknown API is 404', ({ elite }) => ['/v1/call/nothing/x', { key: elite.test }], 404, 'API_NOT_FOUND'),
  refuses(
    'an unknown endpoint is 404',
    ({ elite }) => ['/v1/call/weather/yesterday', { key: elite.test }],
    404,
    'ENDPOINT_NOT_FOUND',
  ),
  refuses(
    'the endpoint is checked before the method: 404 before 405',
    ({ elite }) => ['/v1/call/weather/yesterday', { method: 'PUT', key: elite.test }],
    404,
    'ENDPOINT_NOT_FOUND',
  ),
  {
    says: 'a method other than GET, HEAD and POST is answered 405 with Allow, before the plan is checked',
    holds: async ({ send, free }) => {
      const answer = await send('/v1/call/news/top', { method: 'DELETE', key: free.live })
      assertFailure(answer, 405, 'METHOD_NOT_ALLOWED')
      assert.equal(answer.headers.get('allow'), 'GET, HEAD, POST')
    },
  },
  {
    says: 'a call of an API above the plan is answered 402 with upgrade_to, before its parameters are checked',
    holds: async ({ send, free }) => {
      const answer = await send('/v1/call/news/top?max=99', { key: free.test })
      assertFailure(answer, 402, 'PLAN_UPGRADE_REQUIRED')
      assert.match(answer.body.error.hint, /\bupgrade_to=pro\b/)
    },
  },
  refuses(
    'parameters are checked before enablement: 400 before 503',
    ({ elite }) => ['/v1/call/news/top?max=99', { key: elite.live }],
    400,
    'INVALID_PARAMETER',
  ),
  {
    says: 'a call that is refused before the queue does not count for the minute',
    holds: async ({ send, elite }) => {
      const left = async (path: string) =>
        Number((await send(path, { key: elite.test })).headers.get('x-ratelimit-remaining'))
      const before = await left(WEATHER)
      assert.equal(await left('/v1/call/weather/current?latitude=99&longitude=2'), before)
      assert.equal(await left('/v1/call/nothing/x'), before)
    },
  },
  refuses(
    'a missing parameter is 400 and named in the message',
    ({ elite }) => ['/v1/call/weather/current?latitude=1', { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  {
    says: 'the hint about a bad parameter names the parameter as a token',
    holds: async ({ send, elite }) => {
      const { body } = await send('/v1/call/weather/current?latitude=91&longitude=2', { key: elite.test })
      assert.match(body.error.hint, /\bparam=latitude\b/)
    },
  },
  refuses(
    'a declared parameter given twice is 400',
    ({ elite }) => [`${WEATHER}&latitude=3`, { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    "a name that sets the upstream's authentication is 400",
    ({ elite }) => [`${WEATHER}&apikey=mine`, { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    'more than 20 undeclared names are 400',
    ({ elite }) => [WEATHER + Array.from({ length: 21 }, (_, n) => `&extra${n}=1`).join(''), { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    'more than 2 KB of undeclared parameters are 400',
    ({ elite }) => [`${WEATHER}&extra=${'x'.repeat(2_100)}`, { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    'a path parameter that is .. is refused',
    ({ elite }) => ['/v1/call/dictionary/define?word=..', { key: elite.test }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    'a nested object in the body of a call is 400',
    ({ elite }) => ['/v1/call/weather/current', { key: elite.test, body: { latitude: { a: 1 }, longitude: 2 } }],
    400,
    'INVALID_PARAMETER',
  ),
  refuses(
    'a body of a call that is not JSON is 400 INVALID_JSON',
    ({ elite }) => ['/v1/call/weather/current', { key: elite.test, body: '{"latitude":' }],
    400,
    'INVALID_JSON',
  ),
  refuses(
    'a body of an account route that is not JSON is 400 INVALID_JSON',
    () => ['/v1/auth/login', { body: '{' }],
    400,
    'INVALID_JSON',
  ),
  refuses(
    'a body of another media type is 415',
    () => ['/v1/auth/login', { body: 'email=a', headers: { 'content-type': 'text/plain' } }],
    415,
    'UNSUPPORTED_MEDIA_TYPE',
  ),
  refuses('an address that names no route is 404', () => ['/v1/nothing'], 404, 'NOT_FOUND'),
  {
    says: 'a method that a route does not have is answered 405 with Allow',
    holds: async ({ send }) => {
      const answer = await send('/v1/catalog', { method: 'DELETE' })
      assertFailure(answer, 405, 'METHOD_NOT_ALLOWED')
      assert.match(answer.headers.get('allow') ?? '', /\bGET\b/)
    },
  },
  {
    says: 'a body that is too large is answered 413',
    holds: async (world) => {
      const answer = await raw(world, 'POST /v1/call/weather/current HTTP/1.1', 'x'.repeat(1_100_000))
      assert.deepEqual(answer, { status: 413, code: 'PAYLOAD_TOO_LARGE' })
    },
  },
  {
    says: 'an address that is too long is answered 414, whatever its length',
    holds: async (world) => {
      for (const length of [9_000, 20_000, 200_000]) {
        const answer = await raw(world, `GET ${WEATHER}&x=${'x'.repeat(length)} HTTP/1.1`)
        assert.deepEqual(answer, { status: 414, code: 'URI_TOO_LONG' })
      }
    },
  },
  {
    says: 'header fields that are too large are answered 431',
    holds: async (world) => {
      const answer = await raw(world, `GET ${WEATHER} HTTP/1.1\r\nX-Large: ${'x'.repeat(20_000)}`)
      assert.deepEqual(answer, { status: 431, code: 'HEADERS_TOO_LARGE' })
    },
  },
  {
    says: 'text that is not Unicode is answered 400 INVALID_ENCODING',
    holds: async (world) =>
      assert.deepEqual(await raw(world, `GET ${WEATHER}&x=%FF HTTP/1.1`), { status: 400, code: 'INVALID_ENCODING' }),
  },
  {
    says: 'errors have shape A outside /v1/call and shape B below it',
    holds: async ({ send, elite }) => {
      const outside = (await send('/v1/me')).body
      assert.deepEqual(Object.keys(outside).sort(), ['code', 'docs', 'error', 'hint', 'message'])
      const under = (await send('/v1/call/nothing/x', { key: elite.test })).body
      assert.deepEqual([Object.keys(under).sort(), under.status], [['error', 'status'], 'error'])
    },
  },
  {
    says: 'a hint is a single sentence, with its tokens after it',
    holds: async ({ send }) => assert.match((await send('/v1/me')).body.hint, /^[A-Z][^.]*\.( \w+=\S+)*$/),
  },
  {
    says: 'a failure has the form of problem details if Accept prefers this form (RFC 9457)',
    holds: async ({ send, elite }) => {
      const headers = { accept: 'application/problem+json' }
      const answer = await send('/v1/call/weather/current', { key: elite.test, headers })
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
      const { type, status, code, instance } = answer.body
      assert.deepEqual([status, code], [400, 'INVALID_PARAMETER'])
      assert.ok(type.endsWith('/docs/errors#INVALID_PARAMETER') && instance.startsWith('urn:request:req_'))
    },
  },
  {
    says: 'PUT, GET and DELETE /v1/provider-keys store, list and delete a key of the caller and never show it',
    holds: async ({ send, free }) => {
      const path = '/v1/provider-keys/code-host-user'
      const key = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
      const put = await send(path, { method: 'PUT', token: free.token, body: { key } })
      assert.equal(put.status, 200)
      assert.deepEqual([put.body.apiSlug, put.body.accessMode], ['code-host-user', 'byok_available'])
      assert.ok(['valid', 'invalid', 'unvalidated'].includes(put.body.status) && put.body.maskedKey.endsWith('wxyz'))
      const list = await send('/v1/provider-keys', { token: free.token })
      assert.equal(list.body.providerKeys.length, 1)
      assert.ok(!put.text.includes(key) && !list.text.includes(key))
      assert.equal((await send(path, { method: 'DELETE', token: free.token })).status, 204)
      const missing = await send(path, { method: 'DELETE', token: free.token })
      assertFailure(missing, 404, 'KEY_NOT_FOUND')
      assert.match(`${missing.body.message} ${missing.body.hint}`, /provider key.*GET \/v1\/provider-keys/)
    },
  },
]
