import assert from 'node:assert/strict'
import { type RequestOptions, send, signUp } from '../client.ts'
import { until } from '../gateway.ts'
import { assertFailure, type Statement, type World } from './world.ts'

/** Sends a request to the operator API, which has its own port. */
async function operator({ gateway, memory }: World, path: string, options: RequestOptions = {}) {
  memory.ops ??= gateway.startConsole()
  const token = gateway.environment.OPERATOR_TOKEN
  return await send(gateway, `/v1/operator${path}`, { token, ...options, url: (await memory.ops) as string })
}
const patch = (world: World, path: string, body: object) => operator(world, path, { method: 'PATCH', body })
const post = (world: World, path: string, body: object = {}) => operator(world, path, { method: 'POST', body })

/**
 * A change reaches every process within a second. The tests wait longer, because the machine runs
 * other tests too.
 */
const CHANGE_MS_MAX = 5_000

const WEATHER = '/v1/call/weather/current?latitude=3&longitude=4'

/**
 * Statements about the operator API. They come last, because they change what all other statements
 * see.
 */
export const OPERATOR_STATEMENTS: Statement[] = [
  {
    says: 'every route of the operator API needs OPERATOR_TOKEN',
    holds: async (world) => {
      for (const path of ['/users?email=a', '/upstreams', '/overview']) {
        for (const token of [undefined, world.free.token, world.free.live]) {
          assert.equal((await operator(world, path, { token })).status, 401, path)
        }
      }
    },
  },
  {
    says: 'an operator finds a user by email and changes the tier, which the next calls follow',
    holds: async (world) => {
      const { gateway, send } = world
      const account = await signUp(gateway)
      const found = await operator(world, `/users?email=${account.email}`)
      assert.deepEqual([found.status, found.body.users[0].id], [200, account.id])
      assert.equal((await patch(world, `/users/${account.id}`, { tier: 'pro' })).status, 200)
      await until(async () => (await send('/v1/call/news/top', { key: account.test })).status === 200, CHANGE_MS_MAX)
      assert.equal((await send('/v1/billing/status', { token: account.token })).body.plan, 'Pro')
    },
  },
  {
    says: 'a disabled account is refused with every credential',
    holds: async (world) => {
      const { gateway, send } = world
      const account = await signUp(gateway)
      assert.equal((await patch(world, `/users/${account.id}`, { disabled: true })).status, 200)
      await until(async () => (await send(WEATHER, { key: account.test })).status === 401, CHANGE_MS_MAX)
      assert.equal((await send('/v1/me', { token: account.token })).status, 401)
      assert.equal((await send('/v1/auth/login', { body: account })).status, 401)
    },
  },
  {
    says: 'a paused API refuses live calls with 503 API_PAUSED until it is resumed',
    holds: async (world) => {
      const { send, elite, upstream } = world
      const current = { time: 't', temperature: 1, weathercode: 1, winddirection: 1, is_day: 1 }
      upstream.play('weather', () => ({ current_weather: current }))
      assert.equal((await post(world, '/upstreams/weather/pause')).status, 200)
      await until(async () => (await send(WEATHER, { key: elite.live })).status === 503, CHANGE_MS_MAX)
      const refused = await send(WEATHER, { key: elite.live })
      assertFailure(refused, 503, 'API_PAUSED')
      assert.ok(Number(refused.headers.get('retry-after')) > 0)
      assert.equal((await post(world, '/upstreams/weather/resume')).status, 200)
      await until(async () => (await send(WEATHER, { key: elite.live })).status === 200, CHANGE_MS_MAX)
    },
  },
  {
    says: 'an API that is switched off leaves catalog, /llms.txt and MCP, and comes back when it is switched on',
    holds: async (world) => {
      const { send, gateway, elite } = world
      const isListed = async () => {
        const { body } = await send('/v1/catalog')
        const llms = await (await fetch(`${gateway.url}/llms.txt`)).text()
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
        const headers = { accept: 'application/json, text/event-stream' }
        const mcp = await send('/mcp/trivia', { key: elite.test, headers, body: message })
        const inCatalog = body.data.some(({ api_name }: { api_name: string }) => api_name === 'trivia')
        return [inCatalog, llms.includes('trivia:'), mcp.status === 200]
      }
      await patch(world, '/upstreams/trivia', { enabled: false })
      await until(async () => (await isListed()).every((listed) => !listed), CHANGE_MS_MAX)
      await patch(world, '/upstreams/trivia', { enabled: true })
      await until(async () => (await isListed()).every((listed) => listed), CHANGE_MS_MAX)
    },
  },
  {
    says: 'the caps of an API change as a whole or not at all',
    holds: async (world) => {
      const capsOf = async () => (await world.send('/v1/catalog/trivia')).body.limits.concurrency
      const before = await capsOf()
      const wrong = { caps: { concurrency: 2, rates: [{ max: -1, seconds: 5 }] } }
      assertFailure(await patch(world, '/upstreams/trivia', wrong), 400, 'VALIDATION_ERROR')
      assert.equal(await capsOf(), before)
      const right = { caps: { concurrency: before + 1, rates: [{ max: 1, seconds: 5 }] } }
      assert.equal((await patch(world, '/upstreams/trivia', right)).status, 200)
      await until(async () => (await capsOf()) === before + 1, CHANGE_MS_MAX)
    },
  },
  {
    says: 'the operator’s key enables news, and is never shown again',
    holds: async (world) => {
      const changed = await patch(world, '/upstreams/news', { key: 'gnews-0123456789' })
      assert.equal(changed.status, 200)
      assert.ok(!changed.text.includes('gnews-0123456789'))
      await until(async () => (await world.send('/v1/catalog/news')).body.enabled === true, CHANGE_MS_MAX)
      assert.ok(!(await operator(world, '/upstreams')).text.includes('gnews-0123456789'))
    },
  },
  {
    says: 'the overview shows queues, caps, health and processes',
    holds: async (world) => {
      const { status, text } = await operator(world, '/overview')
      assert.equal(status, 200)
      for (const name of ['queue', 'cap', 'health', 'processes']) assert.ok(text.includes(`"${name}`), name)
    },
  },
]
