import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { createApiKey } from '../../src/accounts/api-key.ts'
import { memoize } from '../../src/async/memoize.ts'
import { closeApi } from '../attack/close-api.ts'
import { choose, HELP, SCENARIOS } from '../attack/command-line.ts'
import { halfOpen } from '../attack/half-open.ts'
import { manyAccounts, takeWholeCap } from '../attack/many-accounts.ts'
import { mcpWork } from '../attack/mcp-work.ts'
import { onePersonShort } from '../attack/one-person.ts'
import { provokedLimit } from '../attack/provoked-limit.ts'
import { redisMemory } from '../attack/redis-memory.ts'
import type { Scenario } from '../attack/scenario.ts'
import { signIns } from '../attack/sign-ins.ts'
import { silentDns } from '../attack/silent-dns.ts'
import { send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const FEW_OF_STRANGERS = { CLIENT_CONNECTIONS_MAX: '3', CLIENT_ANONYMOUS_PER_SECOND: '5' }
const ONE_REQUEST_A_SECOND = { ACCOUNT_REQUESTS_PER_SECOND: '1' }

/** Short forms of the attacks of `npm run attack`, and the bounds that single clients meet. */
describe('one caller', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  const scenarios = [
    ...[closeApi, manyAccounts, onePersonShort, halfOpen, provokedLimit],
    ...[redisMemory, silentDns, signIns],
  ]

  before(async () => {
    upstream = await startUpstreamServer()
    const slugs = scenarios.flatMap((scenario) => scenario.slugs ?? [])
    gateway = await startGateway({
      isInProcess: true,
      environment: Object.assign(
        upstream.environment(...slugs, ...(mcpWork.slugs ?? []), 'code-host-search'),
        { UPSTREAM_CODE_HOST_SEARCH_CAPS: 'concurrency=4,12/3600' },
        ...scenarios.map(({ environment }) => environment),
      ),
    })
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  /** An API node with these settings, which the tests that need them share. */
  const nodeWith = memoize(JSON.stringify, (environment: Record<string, string>) => gateway.startWeb(environment))

  const assertHeld = async ({ run }: Scenario, seconds: number): Promise<void> => {
    const { isPassed, figures } = await run(gateway, seconds, upstream)
    assert.ok(isPassed, JSON.stringify(figures))
  }

  it('the command of the attacks lists all attacks with --help, and names a misspelt attack', () => {
    for (const { name, claim } of SCENARIOS) assert.ok(HELP.includes(`  ${name} `) && HELP.includes(claim), name)
    assert.deepEqual([choose(['--help']), choose([]), choose(['close-api'])], [undefined, SCENARIOS, [closeApi]])
    assert.throws(() => choose(['close']), { message: 'there is no scenario "close" (--help lists them)' })
  })

  it('one caller whose own parameters make an upstream fail does not make the upstream unavailable to others', () =>
    assertHeld(closeApi, 2))

  it('one caller with many accounts leaves room in an hourly cap for other networks, and alone has all of it', async () => {
    await assertHeld(manyAccounts, 1)
    upstream.play('code-host-search', () => ({ total_count: 0, incomplete_results: false, items: [] }))
    const { isPassed, figures } = await takeWholeCap(gateway, 12, (index) => `code-host-search/repos?q=tenant${index}`)
    assert.ok(isPassed, JSON.stringify(figures))
  })

  it('one caller with many networks, or with old and proven accounts, leaves room in an hourly cap for others', () =>
    assertHeld(onePersonShort, 1))

  it('one caller with many accounts whose calls make an upstream fail does not make the upstream unavailable to others', () =>
    assertHeld(halfOpen, 1))

  it('one caller whose own parameters meet a limit keeps nobody from an API, or for a minute', () =>
    assertHeld(provokedLimit, 1))

  it('one caller keeps no node from Postgres by names of which no name server says anything', () =>
    assertHeld(silentDns, 1))

  it('one caller without an account begins sign-ins, and leaves nothing and leads nowhere', () =>
    assertHeld(signIns, 1))

  it('one caller can store as many bytes of results in Redis as its plan allows, and no more', () =>
    assertHeld(redisMemory, 0))

  it('one caller has so many connections and anonymous requests a second, others and accounts are served', async () => {
    const { token, test } = await signUp(gateway)
    const url = await nodeWith(FEW_OF_STRANGERS)
    const statuses: number[] = []
    const startedAt = performance.now()
    while (statuses.length < 30) statuses.push(await status(url, '/llms.txt', '127.0.0.5'))
    const served = statuses.filter((code) => code === 200).length
    // The limit allows the burst of two seconds, and five requests for each second that the
    // requests took.
    const most = 10 + Math.ceil((5 * (performance.now() - startedAt)) / 1_000)
    assert.ok(served >= 10 && served <= most, `${served} of at most ${most} were served`)
    assert.equal(statuses.filter((code) => code === 429).length, 30 - served)
    assert.equal(await status(url, '/llms.txt', '127.0.0.6'), 200)
    assert.equal(await status(url, '/readyz', '127.0.0.5'), 200)
    // Accounts are bounded by their own limits.
    for (let count = 0; count < 20; count += 1) {
      assert.equal(await status(url, '/v1/me', '127.0.0.5', { authorization: `Bearer ${token}` }), 200)
    }
    const refused = await send(gateway, '/v1/call/trivia/questions', { url, key: test })
    assert.equal(refused.status, 200)

    const idle = await Promise.all(Array.from({ length: 3 }, () => open(url, '127.0.0.7')))
    assert.equal(await status(url, '/healthz', '127.0.0.7'), 429)
    assert.equal(await status(url, '/healthz', '127.0.0.8'), 200)
    idle[0]?.destroy()
    let last: number
    do last = await status(url, '/healthz', '127.0.0.7')
    while (last === 429)
    assert.equal(last, 200)
    for (const socket of idle) socket.destroy()
  })

  it('one account’s MCP messages cost units by their work, and its large task is answered in part', async () => {
    // The limit has so few units that even a slow machine reaches it.
    const url = await gateway.startWeb({ ...mcpWork.environment, ACCOUNT_REQUESTS_PER_SECOND: '5' })
    const { figures } = await mcpWork.run(Object.create(gateway, { url: { value: url } }), 1, upstream)
    assert.ok(Number(figures['refused with 429']) > 0, JSON.stringify(figures))
    assert.ok(Number(figures['messages answered']) > 0, JSON.stringify(figures))
    assert.ok(Number(figures['longest answer, characters']) < 150_000, JSON.stringify(figures))
  })

  it('one account has one usage report at a time, a few more wait, and the rest are refused with a time', async () => {
    const [caller, other] = [await signUp(gateway), await signUp(gateway)]
    const report = ({ token }: { token: string }) => send(gateway, '/v1/usage', { token })
    const answers = await Promise.all(Array.from({ length: 40 }, () => report(caller)))
    const refused = answers.filter(({ status: code }) => code === 429)
    assert.ok(refused.length > 0 && refused.length < 40)
    const served = answers.filter(({ status: code }) => code === 200)
    assert.ok(served.length > 0)
    // On a busy machine Postgres may take longer for a report than a node waits.
    const others = answers.filter((answer) => !refused.includes(answer) && !served.includes(answer))
    for (const { status: code, body } of others) assert.deepEqual([code, body.code], [503, 'DEPENDENCY_UNAVAILABLE'])
    assert.equal(refused[0]?.body.code, 'RATE_LIMIT_EXCEEDED')
    assert.ok(Number(refused[0]?.headers.get('retry-after')) >= 1)
    assert.equal((await report(other)).status, 200)
    assert.equal((await report(caller)).status, 200)
  })

  it('an account may send a limited number of requests a second that are not calls, whatever their routes are', async () => {
    const [caller, other] = [await signUp(gateway), await signUp(gateway)]
    const url = await nodeWith(ONE_REQUEST_A_SECOND)
    const call = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const routes: [path: string, options: object][] = [
      ['/v1/me', { token: caller.token }],
      ['/v1/calls/call_0', { key: caller.test }],
      ['/v1/batch', { key: caller.live, body: { calls: [] } }],
      ['/mcp', { key: caller.test, body: call }],
    ]
    for (const [path, options] of routes) {
      const refusals = async () => {
        const answers = await Promise.all(Array.from({ length: 20 }, () => send(gateway, path, { url, ...options })))
        return answers.filter(({ status: code }) => code === 429)
      }
      let refused = await refusals()
      const { body, headers } = refused[0] ?? assert.fail(`${path} is not bounded`)
      assert.equal(body.code, 'RATE_LIMIT_EXCEEDED')
      assert.match(body.message, /This account sends too many requests/)
      assert.ok(Number(headers.get('retry-after')) >= 1)
      // An answer goes without the header if Redis takes longer than 250 ms.
      await until(async () => {
        if (refused.some((answer) => answer.headers.has('ratelimit'))) return true
        refused = await refusals()
        return false
      })
    }
    assert.equal((await send(gateway, '/v1/me', { url, token: other.token })).status, 200)
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await send(gateway, '/v1/call/trivia/questions', { url, key: caller.test })).status, 200)
    }
  })

  it('while a leaked key of an account uses up its requests, its owner revokes the key', async () => {
    const owner = await signUp(gateway)
    const url = await nodeWith(ONE_REQUEST_A_SECOND)
    const poll = () => send(gateway, '/v1/calls/call_0', { url, key: owner.live })
    while ((await poll()).status !== 429);
    const keys = await send(gateway, '/v1/keys', { url, token: owner.token })
    assert.equal(keys.status, 200)
    const { id } = keys.body.keys.find((key: { environment: string }) => key.environment === 'live')
    assert.equal((await send(gateway, `/v1/keys/${id}`, { url, token: owner.token, method: 'DELETE' })).status, 204)
    assert.equal((await poll()).status, 401)
  })

  it('one caller without an account has lower limits for requests that cost more, such as sign-ins of applications and pages that are rendered for each request', async () => {
    const url = await nodeWith(FEW_OF_STRANGERS)
    const costly = [
      ['/oauth/authorize?client_id=unknown', 10],
      ['/?q=weather', 3],
      ['/v1/catalog?q=weather', 2],
    ] as const
    for (const [index, [path, units]] of costly.entries()) {
      const startedAt = performance.now()
      const statuses: number[] = []
      while (statuses.length < 30) statuses.push(await status(url, path, `127.0.1.${index + 1}`))
      const seconds = (performance.now() - startedAt) / 1_000
      const served = statuses.filter((code) => code !== 429).length
      // The limit allows the burst of two seconds, and the units that were added since.
      assert.ok(served >= 1 && served * units <= 10 + 5 * seconds, `${path}: ${served} in ${seconds} s`)
    }
  })

  it('one caller sends no large bodies to log-in and sign-up', async () => {
    const body = JSON.stringify({ email: 'a@example.com', password: 'p'.repeat(4_096) })
    for (const route of ['/v1/auth/login', '/v1/auth/signup']) {
      const { status: code, body: answer, headers } = await send(gateway, route, { body })
      assert.deepEqual([code, answer.code, answer.hint], [413, 'PAYLOAD_TOO_LARGE', 'Send at most 4 KiB.'])
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
    }
  })

  it('one caller sends unknown keys until they are refused without a look-up, while known keys of its network go on', async () => {
    const { test } = await signUp(gateway)
    const url = await gateway.startWeb({ UNKNOWN_KEYS_PER_MINUTE: '2' })
    const call = (key: string) => send(gateway, '/v1/call/trivia/questions', { url, key })
    assert.equal((await call(test)).status, 200)
    const codes = []
    // The checksum is right, but nobody has these keys.
    for (const environment of ['live', 'test', 'live', 'test'] as const) {
      const { status: code, headers } = await call(createApiKey(environment))
      codes.push(code)
      if (code === 429) assert.ok(Number(headers.get('retry-after')) > 20)
    }
    assert.deepEqual(codes, [401, 401, 429, 429])
    assert.equal((await call(test)).status, 200)
  })
})

/** Status of a request from one of this machine's addresses, on a connection of its own. */
async function status(url: string, path: string, localAddress: string, headers: object = {}): Promise<number> {
  const sent = request(url + path, { localAddress, headers: { ...headers }, agent: new Agent({ keepAlive: false }) })
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode === 429) assert.ok(Number(response.headers['retry-after']) >= 1)
  return response.statusCode
}

async function open(url: string, localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress })
  await once(socket, 'connect')
  return socket
}
