import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { EmbeddedServer } from '../../src/local/embedded/embedded-server.ts'
import { type EmbeddedPostgres, startPostgres } from '../../src/local/embedded/postgres.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, inheritedEnvironment, startGateway, until } from '../support/gateway.ts'
import { withMcpClient } from '../support/mcp-client.ts'
import { prepareSteps, type StepOutcome } from '../support/oauth-steps.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/**
 * If something waits for a server that is unreachable, it waits for the 30 s of a call or for ever.
 * This limit is far from both, and from zero.
 */
const REFUSED_MS_MAX = 15_000

/** An address whose answer is in no cache. */
const path = (): string => `/v1/call/currency/latest?nonce=${randomUUID()}`
const RATES = { base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }

let folder: string
let redis: EmbeddedServer
let postgres: EmbeddedPostgres
let gateway: Gateway
let upstream: UpstreamServer
let account: Account

/** Servers of this folder start again at their old address, with their data. */
const options = () => ({ dataDir: folder, print: () => undefined })

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agw-dependencies-'))
  ;[redis, postgres, upstream] = await Promise.all([
    startRedis(options()),
    startPostgres(options()),
    startUpstreamServer(),
  ])
  upstream.play('currency', () => RATES)
  gateway = await startGateway({
    services: { databaseUrl: postgres.url, redisUrl: redis.url, folder },
    environment: {
      ...upstream.environment('currency'),
      UPSTREAM_CURRENCY_CAPS: 'concurrency=50,10000/1',
      PLAN_LIMITS: '{"Free":{"perMinute":100000,"inFlight":1000,"perMonth":1000000}}',
    },
  })
  account = await signUp(gateway)
})
after(async () => {
  await gateway.stop()
  await upstream.close()
  await Promise.all([redis.stop(), postgres.stop()])
  await rm(folder, { recursive: true, force: true })
})

const isRunning = (): boolean =>
  [...gateway.web, ...gateway.workers].every(({ exitCode, signalCode }) => exitCode === null && signalCode === null)

const call = () => send(gateway, path(), { key: account.live })

/**
 * The application belongs to another account than the caller. If its user agrees, its rights
 * change, and the node has to look them up again.
 */
async function stepsOfSignIn() {
  const { token } = await signUp(gateway)
  return await prepareSteps(gateway.url, 'http://localhost:3000', token)
}

/**
 * Every step gets an answer, which says that neither the application nor the user made a mistake.
 */
function assertAway(outcomes: StepOutcome[]): void {
  for (const { step, status, text, tookMs } of outcomes) {
    assert.equal(status, 503, `${step}: ${text}`)
    assert.match(text, /DEPENDENCY_UNAVAILABLE|temporarily_unavailable|<h1>/, step)
    assert.ok(tookMs < REFUSED_MS_MAX, `${step} was answered after ${tookMs} ms`)
  }
}

const linesOf = (requestId: string): string[] => {
  const lines = gateway.output.join('').split('\n')
  return lines.filter((line) => line.includes(requestId))
}

async function killRedis(): Promise<void> {
  await redis.signal('SIGKILL')
  await redis.stop()
}

describe('while Redis is unreachable', () => {
  it('while Redis is unreachable, calls are refused with 503 at once, other routes serve, and calls are answered again without a restart', async () => {
    assert.equal((await call()).status, 200)
    for (let round = 0; round < 2; round += 1) {
      await killRedis()
      await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
      const answers = await Promise.all(
        // The most refused calls of an account that get a line of their own in a second.
        Array.from({ length: 10 }, async () => {
          const startedAt = performance.now()
          const answer = await call()
          return { answer, tookMs: performance.now() - startedAt }
        }),
      )
      for (const { answer, tookMs } of answers) {
        assert.equal(answer.status, 503, answer.text)
        assert.equal(answer.body.error.code, 'DEPENDENCY_UNAVAILABLE')
        assert.ok(Number(answer.headers.get('retry-after')) >= 1)
        // If a connection fails, its command fails.
        assert.ok(tookMs < REFUSED_MS_MAX, `refused after ${tookMs} ms`)
      }
      // A quick machine comes to the second round within the second of the first.
      if (round === 0) {
        const linesOfCalls = () => answers.map(({ answer }) => linesOf(answer.headers.get('x-request-id') ?? '').length)
        await until(() => linesOfCalls().every((count) => count > 0))
        assert.ok(
          linesOfCalls().every((count) => count === 1),
          'one log line a call',
        )
      }
      assert.equal((await send(gateway, '/healthz')).status, 200)
      assert.equal((await send(gateway, '/v1/catalog')).status, 200)
      assert.equal((await send(gateway, '/v1/me', { token: account.token })).status, 200)
      const page = async () => (await fetch(`${gateway.url}/apis/currency`)).text()
      await until(async () => /cannot serve calls at the moment/.test(await page()))
      redis = await startRedis(options())
      assert.equal(redis.url, gateway.environment['REDIS_URL'])
      await until(async () => (await call()).status === 200)
      assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
      for (let count = 0; count < 10; count += 1) assert.equal((await call()).status, 200)
      await until(async () => !/cannot serve calls at the moment/.test(await page()))
    }
    assert.ok(isRunning())
  })

  it('while Redis is unreachable, a call whose progress an MCP client hears of goes on, and the client has its answer when Redis is back', async (t) => {
    const held: (() => void)[] = []
    upstream.play('currency', (_arrival, response) => void held.push(() => response.end(JSON.stringify(RATES))))
    t.after(() => upstream.play('currency', () => RATES))
    const headers = { 'x-api-key': account.live }
    await withMcpClient(`${gateway.url}/mcp/currency`, headers, {}, async ({ client }) => {
      let heard = 0
      const result = client.callTool(
        { name: 'currency_latest', arguments: { nonce: randomUUID() } },
        {
          onprogress: () => {
            heard += 1
          },
        },
      )
      await until(() => heard > 0 && held.length > 0)
      await killRedis()
      await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
      const before = heard
      await until(() => heard > before)
      redis = await startRedis(options())
      await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
      // If a worker lost its lock, the request may have been sent a second time.
      const releasing = setInterval(() => {
        for (const release of held.splice(0)) release()
      }, 50)
      const { isError, structuredContent } = await result.finally(() => clearInterval(releasing))
      assert.equal(isError, undefined)
      assert.deepEqual(Object(structuredContent).rates, RATES.rates)
    })
  })
})

describe('while Redis says nothing', () => {
  it('while Redis is silent, calls are refused with 503, and use none of the limits when Redis answers again', async (t) => {
    const client = new Redis(redis.url)
    const held = (name: string) => client.zcard(`agw:{a:${account.id}}:live:${name}`)
    await until(async () => (await call()).status === 200 && (await held('inflight')) === 0)
    const before = await held('minute')
    const { takeAll } = await stepsOfSignIn()
    await redis.signal('SIGSTOP')
    try {
      for (const { status } of await Promise.all(Array.from({ length: 5 }, call))) assert.equal(status, 503)
      // Sign-ins need only Postgres. If something needs Redis too, it says so.
      for (const { step, status, text, tookMs } of await takeAll()) {
        assert.ok([200, 201, 303, 503].includes(status), `${step}: ${status} ${text}`)
        assert.ok(tookMs < REFUSED_MS_MAX, `${step} was answered after ${tookMs} ms`)
      }
    } finally {
      await redis.signal('SIGCONT')
      t.after(() => client.disconnect())
    }
    // The commands in its buffers run now. Five calls are charged that nobody knows of.
    await until(async () => (await held('minute')) === before + 5)
    await until(async () => (await held('inflight')) === 0 && (await held('minute')) === before, 20_000)
  })
})

describe('while Redis is full', () => {
  it('while Redis is full, answers that the upstream gave are kept until they can be sent, and are counted', async () => {
    const client = new Redis(redis.url)
    after(() => client.disconnect())
    const [, before = '0'] = (await client.config('GET', 'maxmemory')) as string[]
    const held = Promise.withResolvers<void>()
    upstream.play('currency', async () => {
      await held.promise
      return RATES
    })
    // This account is used only here, so nothing else is on its way into its usage.
    const own = await signUp(gateway)
    const used = async () => {
      const { body } = await send(gateway, '/v1/usage', { token: own.token })
      return body.usage.reduce((sum: number, { calls }: { calls: number }) => sum + calls, 0)
    }
    const arrived = upstream.arrivalsOf('currency').length
    const calls = Array.from({ length: 5 }, () => send(gateway, path(), { key: own.live }))
    await until(() => upstream.arrivalsOf('currency').length === arrived + 5)
    await client.config('SET', 'maxmemory', '1')
    held.resolve()
    // There is no answer yet, and no call is lost.
    const early = await Promise.race([Promise.any(calls), new Promise((resolve) => setTimeout(resolve, 700, 'none'))])
    await client.config('SET', 'maxmemory', before)
    upstream.play('currency', () => RATES)
    assert.equal(early, 'none')
    for (const { status, text } of await Promise.all(calls)) assert.equal(status, 200, text)
    await until(async () => (await used()) === 5)
  })

  it('while Redis is full, calls are refused with 503 and a Retry-After, a revoked key with 401, and nodes stay ready, because everything else works', async () => {
    const client = new Redis(redis.url)
    const [, before = '0'] = (await client.config('GET', 'maxmemory')) as string[]
    after(() => client.disconnect())
    const owner = await signUp(gateway)
    const { id, key } = (await send(gateway, '/v1/keys', { token: owner.token, body: {} })).body
    const lookUp = async () => (await send(gateway, '/v1/calls/call_1', { key })).status
    assert.equal(await lookUp(), 404)
    await client.config('SET', 'maxmemory', '1')
    try {
      // Routes that take no limits know a revoked key by the version of its account alone.
      const revoked = await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: owner.token })
      assert.deepEqual([revoked.status, await lookUp()], [204, 401])
      const refused = await call()
      assert.deepEqual([refused.status, refused.body.error.code], [503, 'OVERLOADED'])
      assert.ok(Number(refused.headers.get('retry-after')) > 0)
      const { email, password, token } = account
      for (const answer of await Promise.all([
        send(gateway, '/readyz'),
        send(gateway, '/v1/catalog'),
        send(gateway, '/v1/keys', { token }),
        send(gateway, '/v1/auth/login', { body: { email, password } }),
      ]))
        assert.equal(answer.status, 200, answer.text)
    } finally {
      await client.config('SET', 'maxmemory', before)
    }
    assert.equal((await call()).status, 200)
  })
})

describe('while Postgres is unreachable', () => {
  it('while Postgres is unreachable, known callers may go on calling, others are refused with 503, and all are served again without a restart', async () => {
    assert.equal((await call()).status, 200)
    const { take, takeAll } = await stepsOfSignIn()
    await postgres.stop()
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
    assert.equal((await call()).status, 200)
    for (const answer of await Promise.all([
      send(gateway, '/v1/me', { token: account.token }),
      send(gateway, '/v1/auth/login', { body: { email: account.email, password: account.password } }),
      send(gateway, path(), { key: account.test }),
    ])) {
      assert.equal(answer.status, 503, answer.text)
      assert.ok(!/postgres|ECONN|sql/i.test(answer.text.replaceAll('/docs/errors#DEPENDENCY_UNAVAILABLE', '')))
    }
    assertAway(await takeAll())
    postgres = await startPostgres(options())
    assert.equal(postgres.url, gateway.environment['DATABASE_URL'])
    await until(async () => (await send(gateway, '/v1/me', { token: account.token })).status === 200)
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
    assert.equal((await send(gateway, path(), { key: account.test })).status, 200)
    // The outage used nothing up. Each sign-in continues from its last step.
    const after = []
    for (const step of ['details', 'decision', 'resume', 'token', 'refresh']) after.push((await take(step)).status)
    assert.deepEqual(after, [200, 200, 303, 200, 200])
    assert.ok(isRunning())
  })
})

describe('while Postgres says nothing', () => {
  it('while Postgres is silent, requests that need it are refused with 503 within 2 s, readyz included, and calls with known keys still work', async () => {
    await until(async () => (await call()).status === 200)
    const { takeAll } = await stepsOfSignIn()
    const pids = await postgresPids()
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    try {
      const refusals = await Promise.all(
        ['/readyz', '/v1/me', '/v1/keys', '/v1/teams', '/v1/me', '/v1/usage'].map(async (route) => {
          const startedAt = performance.now()
          const { status } = await send(gateway, route, { token: account.token })
          return { route, status, tookMs: performance.now() - startedAt }
        }),
      )
      for (const { route, status, tookMs } of refusals) {
        assert.equal(status, 503, route)
        assert.ok(tookMs < REFUSED_MS_MAX, `${route} was answered after ${tookMs} ms`)
      }
      assert.equal((await call()).status, 200)
      assertAway(await takeAll())
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
    await until(async () => (await send(gateway, '/v1/me', { token: account.token })).status === 200)
    assert.ok(isRunning())
  })
})

/** The server process and the processes of its connections. */
async function postgresPids(): Promise<number[]> {
  const file = await readFile(join(folder, 'postgres', 'data', 'postmaster.pid'), 'utf8')
  const server = Number(file.split('\n', 1)[0])
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(server)])
  return [server, ...stdout.trim().split(/\s+/).map(Number)]
}

describe('an API node, a worker and a console started without Redis and Postgres', () => {
  it('an API node, a worker and a console started without Redis and Postgres stay up, say that they are not ready, and serve when these come', async () => {
    for (const child of [...gateway.web, ...gateway.workers]) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    gateway.web.length = 0
    gateway.workers.length = 0
    await Promise.all([redis.stop(), postgres.stop()])
    const [url, , ops] = await Promise.all([
      gateway.startWeb(),
      gateway.startWorker(),
      gateway.startProcess('src/ops.ts', { OPS_PORT: '0' }),
    ])
    const { listening } = ops.message as { listening: number }
    const headers = { authorization: `Bearer ${gateway.environment['OPERATOR_TOKEN']}` }
    const page = async () => await (await fetch(`http://127.0.0.1:${listening}/queues/weather`, { headers })).text()
    assert.match(await page(), /Redis does not answer/)
    gateway.url = url
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    const ready = await fetch(`${url}/readyz`)
    assert.equal(ready.status, 503)
    assert.deepEqual(await ready.json(), {
      status: 'unavailable',
      postgres: false,
      redis: false,
      problems: [],
    })
    assert.deepEqual([(await call()).status, (await call()).body.error.code], [503, 'DEPENDENCY_UNAVAILABLE'])
    postgres = await startPostgres(options())
    await until(async () => (await send(gateway, '/readyz')).body.postgres === true)
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    redis = await startRedis(options())
    await until(async () => (await fetch(`${url}/readyz`)).status === 200)
    await until(async () => (await call()).status === 200)
    await until(async () => (await page()).includes('No call waits or runs'))
    assert.ok(isRunning())
  })
})

describe('an empty database', () => {
  it('an empty database is brought up to date by three nodes at once: one does it, all succeed', async () => {
    const address = new URL(postgres.superuserUrl)
    const admin = new pg.Client({ connectionString: postgres.superuserUrl })
    await admin.connect()
    await admin.query('create database empty_at_first')
    address.pathname = '/empty_at_first'
    const runs = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/db/migrate.ts')], {
          env: { ...inheritedEnvironment(), DATABASE_URL: address.href },
        })
        let output = ''
        for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
        const [code] = await once(child, 'close')
        return { code, output }
      }),
    )
    for (const { code, output } of runs) assert.equal(code, 0, output)
    assert.equal(runs.filter(({ output }) => output.startsWith('Migrated:')).length, 1)
    assert.equal(runs.filter(({ output }) => output.startsWith('The schema is up to date.')).length, 2)
    await admin.query('drop database empty_at_first with (force)')
    await admin.end()
  })
})
