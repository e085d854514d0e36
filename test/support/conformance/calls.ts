import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Answer, signUp } from '../client.ts'
import { until } from '../gateway.ts'
import { assertFailure, type Statement } from './world.ts'

const WEATHER = '/v1/call/weather/current?latitude=40.71&longitude=-74.01'
const FORECAST = { current_weather: { time: '2026-11-21T12:00', temperature: 7.5, windspeed: 3, winddirection: 90, is_day: 1, weathercode: 2 } } // biome-ignore format: one line

const POST = { userId: 1, id: 1, title: 't', body: 'b' }

/** Statements about calls, test keys and plans. */
export const CALL_STATEMENTS: Statement[] = [
  {
    says: 'a success is 200 {status: "success", data}, also for a key as bearer and for a session',
    holds: async ({ send, upstream, elite }) => {
      upstream.play('weather', () => FORECAST)
      for (const credential of [{ key: elite.live }, { token: elite.live }, { token: elite.token }]) {
        const { status, body } = await send(WEATHER, credential)
        assert.deepEqual([status, body.status, body.data.temperature_c], [200, 'success', 7.5])
      }
    },
  },
  {
    says: 'undeclared query parameters reach the upstream unchanged',
    holds: async ({ send, upstream, elite }) => {
      upstream.play('mock-data', () => POST)
      const { status } = await send('/v1/call/mock-data/posts?id=1&colour=r%C3%A9d&colour=blue', { key: elite.live })
      assert.equal(status, 200)
      const url = new URL(upstream.arrivalsOf('mock-data').at(-1)?.url ?? '', 'http://upstream')
      assert.deepEqual(url.searchParams.getAll('colour'), ['réd', 'blue'])
    },
  },
  {
    says: 'POST takes the parameters from the members of a JSON body, and a member that is null does not count',
    holds: async ({ send, upstream, elite }) => {
      upstream.play('mock-data', () => ({ ...POST, id: 2 }))
      const body = { id: 2, colour: null }
      const { status, body: answer } = await send('/v1/call/mock-data/posts', { key: elite.live, body })
      assert.deepEqual([status, answer.data.id], [200, 2])
      assert.ok(!upstream.arrivalsOf('mock-data').at(-1)?.url.includes('colour'))
    },
  },
  {
    says: 'a POST without a body and a POST with an empty body are the same, whatever the content type',
    holds: async ({ send, elite }) => {
      for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }] as const) {
        const { status } = await send('/v1/call/currency/latest', { method: 'POST', key: elite.test, headers })
        assert.equal(status, 200, JSON.stringify(headers))
      }
    },
  },
  {
    says: "with Accept: application/vnd.upstream+json or X-Gateway-Response: raw the upstream's JSON comes as it is",
    holds: async ({ send, upstream, elite }) => {
      upstream.play('weather', () => FORECAST)
      for (const headers of [{ accept: 'application/vnd.upstream+json' }, { 'x-gateway-response': 'raw' }]) {
        const answer = await send(WEATHER, { key: elite.live, headers: headers as Record<string, string> })
        assert.deepEqual(answer.body, FORECAST)
        assert.match(answer.headers.get('content-type') ?? '', /^application\/vnd\.upstream\+json/)
      }
    },
  },
  {
    says: 'an answer carries X-Request-Id, X-Call-Id, RateLimit, RateLimit-Policy, X-RateLimit-* and Server-Timing',
    holds: async ({ send, gateway, upstream }) => {
      upstream.play('weather', () => FORECAST)
      const { live } = await signUp(gateway)
      const { headers } = await send(WEATHER, { key: live })
      assert.match(headers.get('x-request-id') ?? '', /^req_/)
      assert.match(headers.get('x-call-id') ?? '', /^call_[0-9a-f]{32}$/)
      assert.match(headers.get('ratelimit-policy') ?? '', /^"minute";q=10;w=60, "month";q=1000\b/)
      assert.match(headers.get('ratelimit') ?? '', /^"minute";r=9;t=\d+, "month";r=999;t=\d+$/)
      assert.deepEqual([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')], ['10', '9'])
      const resetInSeconds = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1_000
      assert.ok(resetInSeconds > 0 && resetInSeconds < 65, `${resetInSeconds}`)
      assert.match(headers.get('server-timing') ?? '', /queue;dur=[\d.]+.*upstream;dur=[\d.]+/)
    },
  },
  {
    says: 'every authenticated answer says what the account has left: answers of account routes, batches and MCP, and their refusals',
    holds: async ({ send, gateway }) => {
      const { live, token } = await signUp(gateway)
      const requests: [status: number, path: string, options: object][] = [
        [200, '/v1/me', { token }],
        [200, '/v1/keys', { token }],
        [404, `/v1/teams/${randomUUID()}`, { token }],
        [400, '/v1/usage?from=never', { token }],
        [404, '/v1/call/weather/nothing', { key: live }],
        [402, '/v1/call/news/top', { key: live }],
        [404, `/v1/calls/call_${'0'.repeat(32)}`, { key: live }],
        [400, '/v1/batch', { key: live, body: { calls: [] } }],
        [200, '/v1/catalog', { key: live }],
        [200, '/v1/catalog/weather', { key: live }],
        [404, '/v1/catalog/nothing', { key: live }],
        [200, '/mcp', { key: live, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers: { accept: 'application/json, text/event-stream' } }], // biome-ignore format: one line
      ]
      const request = async ([status, path, options]: (typeof requests)[number]) => {
        const answer = await send(path, options)
        assert.equal(answer.status, status, `${path}: ${answer.text}`)
        return answer
      }
      // An answer waits a quarter of a second for these headers. On a busy machine it is sent
      // without them.
      const answerWithLimits = async (ask: () => Promise<Answer>) => {
        for (let time = 0; time < 5; time += 1) {
          const answer = await ask()
          if (answer.headers.has('ratelimit')) return answer
        }
        return await ask()
      }
      const logOut = async () =>
        await request([204, '/v1/auth/logout', { token: (await signUp(gateway)).token, method: 'POST' }])
      for (const ask of [...requests.map((each) => () => request(each)), logOut]) {
        const { headers, text } = await answerWithLimits(ask)
        assert.match(headers.get('ratelimit') ?? '', /^"minute";r=10;t=0, "month";r=1000;t=\d+$/, text)
        assert.equal(headers.get('x-ratelimit-limit'), '10', text)
      }
      assert.equal((await send('/v1/me')).headers.get('ratelimit'), null)
    },
  },
  {
    says: 'RateLimit-Policy names the calls in flight, and Link the terms and the licence of the data',
    holds: async ({ send, elite }) => {
      const { headers } = await send(WEATHER, { key: elite.test })
      assert.match(headers.get('ratelimit-policy') ?? '', /"in-flight";q=100;qu="concurrent-requests"$/)
      assert.equal(
        headers.get('link'),
        '<https://open-meteo.com/en/terms>; rel="terms-of-service", <https://creativecommons.org/licenses/by/4.0/>; rel="license"',
      )
    },
  },
  {
    says: 'a stored answer says so in Cache-Status (RFC 9211)',
    holds: async ({ send, upstream, elite }) => {
      upstream.play('weather', () => FORECAST)
      await send(WEATHER, { key: elite.live })
      const { headers } = await send(WEATHER, { key: elite.live })
      assert.match(headers.get('cache-status') ?? '', /; hit\b/)
    },
  },
  {
    says: 'a test key gets the recording with X-Gateway-Mode: test, without a monthly quota and without a request to the upstream',
    holds: async ({ send, upstream, elite }) => {
      const before = upstream.arrivals.length
      const { status, headers } = await send(WEATHER, { key: elite.test })
      assert.deepEqual([status, headers.get('x-gateway-mode')], [200, 'test'])
      assert.doesNotMatch(headers.get('ratelimit') ?? '', /month/)
      assert.equal(upstream.arrivals.length, before)
    },
  },
  {
    says: "with a test key, members of data that repeat a parameter carry the caller's value",
    holds: async ({ send, elite }) => {
      const { data } = (await send('/v1/call/currency/pair?from=GBP&to=JPY', { key: elite.test })).body
      assert.deepEqual([data.from, data.to], ['GBP', 'JPY'])
    },
  },
  ...(
    [
      ['upstream-500', 502, 'UPSTREAM_ERROR'],
      ['timeout', 502, 'UPSTREAM_TIMEOUT'],
      ['rate-limited', 502, 'UPSTREAM_RATE_LIMITED'],
      ['invalid', 502, 'UPSTREAM_INVALID_RESPONSE'],
    ] as const
  ).map(
    ([scenario, status, code]): Statement => ({
      says: `X-Gateway-Scenario: ${scenario} makes a test call fail with ${status} ${code}`,
      holds: async ({ send, elite }) =>
        assertFailure(
          await send(WEATHER, { key: elite.test, headers: { 'x-gateway-scenario': scenario } }),
          status,
          code,
        ),
    }),
  ),
  {
    says: 'X-Gateway-Scenario: slow-300 makes a test call take 300 ms',
    holds: async ({ send, elite }) => {
      const startedAt = performance.now()
      const { status } = await send(WEATHER, { key: elite.test, headers: { 'x-gateway-scenario': 'slow-300' } })
      assert.equal(status, 200)
      assert.ok(performance.now() - startedAt >= 295)
    },
  },
  {
    says: 'a call with Prefer: respond-async is answered 202 with Location at once, and the result at Location is the answer of the call',
    holds: async ({ send, elite }) => {
      const accepted = await send(WEATHER, { key: elite.test, headers: { prefer: 'respond-async' } })
      const location = accepted.headers.get('location') ?? ''
      assert.equal(accepted.status, 202)
      assert.match(location, /^\/v1\/calls\/call_[0-9a-f]{32}$/)
      let result: Answer | undefined
      await until(async () => {
        result = await send(location, { key: elite.test })
        return result.status !== 202
      })
      assert.deepEqual([result?.status, result?.body.status], [200, 'success'])
      assert.equal(result?.headers.get('x-gateway-mode'), 'test')
    },
  },
  {
    says: 'a call with Prefer: wait=1 is answered 200 if the answer comes in time, and otherwise 202',
    holds: async ({ send, elite }) => {
      const headers = { prefer: 'wait=1' }
      assert.equal((await send(WEATHER, { key: elite.test, headers })).status, 200)
      const slow = await send(WEATHER, { key: elite.test, headers: { ...headers, 'x-gateway-scenario': 'slow-3000' } })
      assert.equal(slow.status, 202)
      assert.equal(slow.headers.get('location'), `/v1/calls/${slow.headers.get('x-call-id')}`)
      await send(slow.headers.get('location') ?? '', { method: 'DELETE', key: elite.test })
    },
  },
  {
    says: 'DELETE /v1/calls/{id} is answered 204, and GET /v1/calls/{id} then 409 CALL_CANCELLED',
    holds: async ({ send, elite }) => {
      const headers = { prefer: 'respond-async', 'x-gateway-scenario': 'slow-5000' }
      const location = (await send(WEATHER, { key: elite.test, headers })).headers.get('location') ?? ''
      assert.equal((await send(location, { method: 'DELETE', key: elite.test })).status, 204)
      assertFailure(await send(location, { key: elite.test }), 409, 'CALL_CANCELLED')
    },
  },
  {
    says: 'the result of another account is answered 404, and so is an id that names no call',
    holds: async ({ send, elite, free }) => {
      const headers = { prefer: 'respond-async' }
      const location = (await send(WEATHER, { key: elite.test, headers })).headers.get('location') ?? ''
      assertFailure(await send(location, { key: free.test }), 404, 'CALL_NOT_FOUND')
      assertFailure(await send(`/v1/calls/call_${'0'.repeat(32)}`, { key: elite.test }), 404, 'CALL_NOT_FOUND')
    },
  },
  {
    says: 'on the Free plan ten calls in a minute are admitted, and the eleventh is answered 429 with the time in header and hint',
    holds: async ({ send, gateway }) => {
      const { test } = await signUp(gateway)
      for (let call = 1; call <= 10; call += 1) assert.equal((await send(WEATHER, { key: test })).status, 200)
      const refused = await send(WEATHER, { key: test })
      assertFailure(refused, 429, 'RATE_LIMIT_EXCEEDED')
      const retryAfter = Number(refused.headers.get('retry-after'))
      assert.ok(retryAfter >= 1 && retryAfter <= 60)
      assert.match(refused.body.error.hint, new RegExp(`retry_after=${retryAfter}\\b`))
      assert.match(refused.body.error.hint, /\bupgrade_to=pro\b/)
    },
  },
  {
    says: 'on the Free plan a sixth call in flight is answered 429 CONCURRENCY_LIMIT_EXCEEDED',
    holds: async ({ send, gateway }) => {
      const { test } = await signUp(gateway)
      const headers = { 'x-gateway-scenario': 'slow-700' }
      const answers = await Promise.all(Array.from({ length: 7 }, () => send(WEATHER, { key: test, headers })))
      const refused = answers.filter(({ status }) => status === 429)
      assert.equal(refused.length, 2)
      for (const answer of refused) assertFailure(answer, 429, 'CONCURRENCY_LIMIT_EXCEEDED')
    },
  },
  {
    says: 'the limits a minute of live calls and of test calls are separate',
    holds: async ({ send, gateway, upstream }) => {
      upstream.play('weather', () => FORECAST)
      const { test, live } = await signUp(gateway)
      await send(WEATHER, { key: test })
      assert.equal((await send(WEATHER, { key: live })).headers.get('x-ratelimit-remaining'), '9')
    },
  },
  {
    says: 'POST /v1/batch answers each call on a line of its own and the cost of the batch on the last line, and equal calls cost once',
    holds: async ({ gateway, elite }) => {
      const weather = { api: 'weather', endpoint: '/current', parameters: { latitude: 1, longitude: 2 } }
      const calls = [weather, weather, { api: 'nothing', endpoint: '/x' }]
      const answer = await fetch(`${gateway.url}/v1/batch`, {
        method: 'POST',
        headers: { 'x-api-key': elite.test, 'content-type': 'application/json' },
        body: JSON.stringify({ calls }),
      })
      assert.equal(answer.status, 200)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/x-ndjson/)
      const lines = (await answer.text())
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      const statusOf = (index: number) => lines.find((line) => line.index === index).status
      assert.deepEqual([statusOf(0), statusOf(1), statusOf(2)], [200, 200, 404])
      const { done, ok, failed, deduplicated } = lines.at(-1)
      assert.deepEqual([done, ok, failed, deduplicated], [true, 2, 1, 1])
    },
  },
  {
    says: 'a batch of more than 50 calls is refused',
    holds: async ({ send, elite }) => {
      const calls = Array.from({ length: 51 }, () => ({ api: 'currency', endpoint: '/latest' }))
      assertFailure(await send('/v1/batch', { key: elite.test, body: { calls } }), 400, 'VALIDATION_ERROR')
    },
  },
  {
    says: 'usage counts calls by day, API, key and status, also refused calls, which are not charged',
    holds: async ({ send, gateway, upstream }) => {
      upstream.play('weather', () => FORECAST)
      const { token, live } = await signUp(gateway)
      await send(WEATHER, { key: live })
      const usage = async () => (await send('/v1/usage?groupBy=day,api,key,status', { token })).body.usage
      assert.equal((await send('/v1/call/weather/current?latitude=91', { key: live })).status, 400)
      await until(async () => (await usage()).length === 2)
      const [row, refused] = await usage()
      assert.deepEqual([row.api, row.status, row.calls], ['weather', 200, 1])
      assert.deepEqual([refused.api, refused.status, refused.calls], ['weather', 400, 1])
      assert.equal((await send('/v1/billing/status', { token })).body.usage.used, 1)
      assert.match(row.day, /^\d{4}-\d{2}-\d{2}$/)
    },
  },
]
