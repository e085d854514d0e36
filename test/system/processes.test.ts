import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { connectionsOf } from '../support/connections.ts'
import { type Gateway, inheritedEnvironment, startGateway, until } from '../support/gateway.ts'
import { SPARING_FLAGS } from '../support/node-flags.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/** An address whose answer is in no cache. */
const path = (): string => `/v1/call/currency/latest?nonce=${randomUUID()}`
const RATES = { base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }

let gateway: Gateway
let upstream: UpstreamServer
let account: Account

before(async () => {
  upstream = await startUpstreamServer()
  gateway = await startGateway({
    environment: {
      ...upstream.environment('currency'),
      UPSTREAM_CURRENCY_CAPS: 'concurrency=200,100000/1',
      PLAN_LIMITS: '{"Free":{"perMinute":1000000,"inFlight":10000,"perMonth":10000000}}',
    },
  })
  account = await signUp(gateway)
})
after(async () => {
  await gateway.stop()
  await upstream.close()
})

const call = (url = gateway.url): Promise<Answer> => send(gateway, path(), { key: account.live, url })

/** How a process ended: its exit code, or the signal. */
async function ending(child: ChildProcess): Promise<number | string> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode ?? child.signalCode ?? ''
}

/** Starts a process without waiting for it. */
function spawnProcess(entry: string, environment: Record<string, string>) {
  const env = { ...inheritedEnvironment(), ...environment }
  const child = fork(new URL(`../../${entry}`, import.meta.url), {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: SPARING_FLAGS,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output += data))
  const ready = once(child, 'message')
  return { process: child, output: () => output, ready }
}

/** Holds every request of the upstream until the test releases it. */
function holdUpstream(): { held: () => number; letGo: () => void } {
  const before = upstream.arrivals.length
  const { promise, resolve } = Promise.withResolvers<void>()
  upstream.play('currency', async () => {
    await promise
    return RATES
  })
  return { held: () => upstream.arrivals.length - before, letGo: resolve }
}

describe('a worker', () => {
  it('a worker that is killed in the middle of a call loses no call, because another worker runs it', async () => {
    const { held, letGo } = holdUpstream()
    const calls = Array.from({ length: 5 }, () => call())
    await until(() => held() >= 5)
    gateway.workers.shift()?.kill('SIGKILL')
    letGo()
    await gateway.startWorker()
    for (const answer of await Promise.all(calls)) assert.equal(answer.status, 200, answer.text)
  })

  it('a worker that gets SIGTERM finishes the call it has, and exits with 0', async () => {
    const { held, letGo } = holdUpstream()
    const active = call()
    await until(() => held() === 1)
    const ended = gateway.workers.shift() ?? assert.fail()
    const output = gateway.output.length
    ended.kill('SIGTERM')
    await until(() => gateway.output.slice(output).join('').includes('"closing"'))
    letGo()
    assert.equal((await active).status, 200)
    assert.equal(await ending(ended), 0)
    assert.equal(held(), 1, 'one request reached the upstream')
    await gateway.startWorker()
    assert.equal((await call()).status, 200)
  })
})

describe('a process of any kind', () => {
  const ENTRIES = ['src/server.ts', 'src/ops.ts', 'workers/worker.ts', 'workers/probe.ts']

  it('a process of any kind ends with 0 if Redis is unreachable, without waiting for it, whether it has started or not', async () => {
    const environment = { ...gateway.environment, REDIS_URL: `redis://127.0.0.1:${await freePort()}` }
    await Promise.all(
      ENTRIES.map(async (entry) => {
        const child = spawnProcess(entry, environment)
        await until(() => child.output().includes('redis'))
        // The probe scheduler is not ready before Redis is.
        if (!entry.endsWith('probe.ts')) await child.ready
        const startedAt = performance.now()
        child.process.kill('SIGTERM')
        assert.equal(await ending(child.process), 0, child.output())
        const tookMs = performance.now() - startedAt
        // If something waits for Redis or for calls, it waits for at least 20 s.
        assert.ok(tookMs < 15_000, `${entry}: ${tookMs} ms`)
      }),
    )
  })

  describe('that serves', () => {
    const running = new Map<string, ReturnType<typeof spawnProcess>>()
    before(async () => {
      for (const entry of ENTRIES) running.set(entry, spawnProcess(entry, gateway.environment))
      await Promise.all([...running.values()].map(({ ready }) => ready))
    })

    it('a process of any kind that serves has the connections that the table of sizes names', {
      skip: process.platform === 'linux' ? false : 'connections are counted in /proc',
    }, async () => {
      const sizing = await readFile(new URL('../../src/docs/operators/sizing.md', import.meta.url), 'utf8')
      const [redisPort, postgresPort] = [gateway.services.redisUrl, gateway.services.databaseUrl].map((url) =>
        Number(new URL(url).port),
      )
      const rows = sizing.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
      const kinds = ['web', 'ops', 'worker', 'probe']
      for (const [index, { process: child }] of [...running.values()].entries()) {
        // Process, connections to Redis, commands, connections to Postgres: idle and at most.
        const row = rows.find((cells) => cells[1] === kinds[index] && cells.length === 6)
        const [, , redis, , postgres = ''] = row ?? assert.fail(`no row of ${kinds[index]}`)
        const [, besides] = postgres.split('+')
        const connections = () => connectionsOf(child.pid ?? 0)
        await until(async () => (await connections())(redisPort) === Number(redis), 20_000)
        const toPostgres = (await connections())(postgresPort)
        assert.ok(toPostgres <= 10 + Number(besides), `${kinds[index]}: ${toPostgres} connections to Postgres`)
      }
    })

    it('a process of any kind ends when its supervisor was killed and nobody reads its log any more', async () => {
      await Promise.all(
        [...running].map(async ([entry, child]) => {
          child.process.stdout?.destroy()
          child.process.stderr?.destroy()
          child.process.disconnect()
          const startedAt = performance.now()
          await ending(child.process)
          assert.ok(performance.now() - startedAt < 25_000, entry)
        }),
      )
    })
  })
})

describe('an API node', () => {
  it('an API node that gets SIGTERM first reports that it is not ready, fails no call under load, and exits with 0', async () => {
    upstream.play('currency', async () => {
      await delay(20)
      return RATES
    })
    const url = await gateway.startWeb()
    const node = gateway.web.at(-1) ?? assert.fail()
    const seen: number[] = []
    let isSending = true
    // Clients behind a load balancer: they call until readyz says 503. There are few of them,
    // because the node serves for only a moment more and must not be busy for longer.
    const clients = Array.from({ length: 4 }, async () => {
      const statuses: number[] = []
      while (isSending) statuses.push((await call(url)).status)
      return statuses
    })
    await until(() => upstream.arrivals.length > 100)
    const active = call(url)
    node.kill('SIGTERM')
    await until(async () => {
      const { status } = await fetch(`${url}/readyz`)
      seen.push(status)
      return status === 503
    })
    const [draining, served] = await Promise.all([send(gateway, '/readyz', { url }), call(url)])
    // The load balancer has seen it, and sends nothing from here on.
    isSending = false
    assert.equal(draining.body.status, 'draining')
    assert.equal(draining.headers.get('connection'), 'close')
    assert.equal(served.status, 200, 'it still serves')
    const statuses = (await Promise.all(clients)).flat()
    assert.equal((await active).status, 200)
    assert.equal(await ending(node), 0)
    assert.ok(statuses.length > 50)
    assert.deepEqual(new Set(statuses), new Set([200]), `of ${statuses.length} calls`)
    await assert.rejects(fetch(`${url}/healthz`))
  })

  it('an API node that gets SIGTERM answers the call that runs before it exits, and waits for no connection over which nothing came, as browsers open them in advance', async () => {
    const { held, letGo } = holdUpstream()
    const url = await gateway.startWeb()
    const node = gateway.web.at(-1) ?? assert.fail()
    const unused = connect(Number(new URL(url).port), '127.0.0.1')
    unused.on('error', () => undefined)
    await once(unused, 'connect')
    // If the node has a later request, it has accepted this connection.
    const active = call(url)
    await until(() => held() === 1)
    const closed = once(unused, 'close')
    node.kill('SIGTERM')
    await closed
    await until(
      async () =>
        await fetch(`${url}/healthz`).then(
          () => false,
          () => true,
        ),
    )
    letGo()
    assert.equal((await active).status, 200)
    // The exit code is 1 if something was still running at the end of its time.
    assert.equal(await ending(node), 0)
  })

  it('an API node that gets a second signal ends at once', async () => {
    const { held, letGo } = holdUpstream()
    const url = await gateway.startWeb()
    const node = gateway.web.at(-1) ?? assert.fail()
    const active = call(url).then(
      () => 'answered',
      () => 'broken off',
    )
    await until(() => held() === 1)
    const output = gateway.output.length
    node.kill('SIGTERM')
    await until(() => gateway.output.slice(output).join('').includes('"closing"'))
    const startedAt = performance.now()
    node.kill('SIGTERM')
    assert.equal(await ending(node), 1)
    assert.ok(performance.now() - startedAt < 10_000)
    assert.equal(await active, 'broken off')
    letGo()
  })

  it('an API node whose reply connection is killed ten times loses no reply', async () => {
    upstream.play('currency', async () => {
      await delay(Math.random() * 60)
      return RATES
    })
    const redis = new Redis(gateway.services.redisUrl)
    try {
      let kills = 0
      let isSending = true
      const statuses: number[] = []
      const clients = Array.from({ length: 12 }, async () => {
        while (isSending) statuses.push((await call()).status)
      })
      while (kills < 10) {
        const answered = statuses.length
        await until(() => statuses.length > answered + 20)
        const list = String(await redis.client('LIST'))
        const readers = list.split('\n').filter((line) => /\bcmd=xread\b/.test(line))
        for (const line of readers) {
          const id = /\bid=(\d+)/.exec(line)?.[1] ?? ''
          kills += Number(await redis.client('KILL', 'ID', id))
        }
      }
      isSending = false
      await Promise.all(clients)
      assert.ok(kills >= 10)
      assert.deepEqual(new Set(statuses), new Set([200]), `of ${statuses.length} calls`)
    } finally {
      redis.disconnect()
    }
  })
})

describe('an API node and the only worker', () => {
  it('an API node and the only worker that get SIGTERM together answer every call that the node still accepts', async () => {
    upstream.play('currency', () => RATES)
    const running = gateway.workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    assert.equal(running.length, 1)
    const [worker] = running
    const url = await gateway.startWeb()
    const node = gateway.web.at(-1) ?? assert.fail()
    await until(async () => (await call(url)).status === 200)
    node.kill('SIGTERM')
    worker?.kill('SIGTERM')
    const statuses: number[] = []
    // Clients that have not noticed yet, because the node serves for a moment more.
    for (;;) {
      const answer = await call(url).catch(() => undefined)
      if (answer === undefined) break
      statuses.push(answer.status)
    }
    assert.ok(statuses.length > 2, `${statuses.length} calls`)
    assert.deepEqual(new Set(statuses), new Set([200]), `of ${statuses.length} calls`)
    assert.deepEqual([await ending(node), await ending(worker ?? assert.fail())], [0, 0])
  })
})
