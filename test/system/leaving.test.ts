import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { storedCalls } from '../../src/queue/call-job.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { pipelining } from '../attack/pipelining.ts'
import { capTraces, isCapQuiet } from '../support/cap-state.ts'
import { type Account, outputUntilNow, send } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { LANE, laneKey } from '../support/lane.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const fact = recorded('random-facts')
const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/hound/a.jpg' }

describe('a caller that leaves', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: Redis

  /** Accepts connections and never sends anything, so no TLS session starts. */
  const silent = createServer()

  before(async () => {
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    stage = await startStage({
      webNodes: 2,
      workers: 2,
      caps: {
        'random-facts': 'concurrency=20,10/6',
        'dog-images': 'concurrency=20,1000/1',
        'mock-data': undefined,
      },
      timeoutMs: 25_000,
      environment: { UPSTREAM_PUBLIC_HOLIDAYS_URL: `https://127.0.0.1:${(silent.address() as AddressInfo).port}` },
    })
    ;({ gateway, upstream, account, redis } = stage)
  })
  after(async () => {
    silent.close()
    await stage.stop()
  })

  /** Sends calls, each of which its caller can leave. */
  function sendAll(
    path: string,
    count: number,
    { gateway, account }: Pick<Stage, 'gateway' | 'account'> = stage,
  ): { leave: AbortController; answer: Promise<number | 'left'> }[] {
    return Array.from({ length: count }, (_, index) => {
      const leave = new AbortController()
      const url = gateway.urls[index % gateway.urls.length] ?? ''
      const answer = send(gateway, path, { key: account.live, url, signal: leave.signal }).then(
        ({ status }) => status,
        () => 'left' as const,
      )
      return { leave, answer }
    })
  }

  const waitingJobs = async (): Promise<number> =>
    (await redis.llen(laneKey('wait'))) + (await redis.llen(laneKey('active')))

  it('a caller that leaves while it waits, takes its call along: 9 of 10 leave and the upstream sees only the others', async () => {
    upstream.play('random-facts', () => fact)
    // The first ten requests of the cap pass. Then the queue begins.
    const first = sendAll('/v1/call/random-facts/random', 10)
    for (const { answer } of first) assert.equal(await answer, 200)
    const calls = sendAll('/v1/call/random-facts/random', 30)
    await until(async () => ((await capTraces(redis, 'random-facts')).queue ?? []).length === 30)
    const staying = calls.filter((_, index) => index % 10 === 0)
    for (const call of calls) if (!staying.includes(call)) call.leave.abort()
    await until(async () => ((await capTraces(redis, 'random-facts')).queue ?? []).length === 3)
    assert.equal(upstream.arrivalsOf('random-facts').length, 10)
    for (const { answer } of staying) assert.equal(await answer, 200)
    assert.equal(upstream.arrivalsOf('random-facts').length, 13)
    for (const call of calls) if (!staying.includes(call)) assert.equal(await call.answer, 'left')
    await until(async () => (await isCapQuiet(redis, 'random-facts')) && (await waitingJobs()) === 0)
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
  })

  it('a caller that leaves while its call is at the upstream, has it aborted there', async () => {
    let closed = 0
    const answers: (() => void)[] = []
    upstream.play('dog-images', (_arrival, response) => {
      response.on('close', () => {
        if (!response.writableFinished) closed += 1
      })
      answers.push(() => response.end(JSON.stringify(dog)))
    })
    const calls = sendAll('/v1/call/dog-images/random', 20)
    await until(() => upstream.arrivalsOf('dog-images').length === 20)
    for (const call of calls.slice(2)) call.leave.abort()
    await until(() => closed === 18)
    for (const answer of answers) answer()
    for (const call of calls.slice(0, 2)) assert.equal(await call.answer, 200)
    // If leaving takes a second on a busy machine, a probe checks whether the upstream hangs.
    const sent = upstream.arrivalsOf('dog-images').length
    assert.ok(sent === 20 || sent === 21, `${sent} requests`)
    await until(async () => (await isCapQuiet(redis, 'dog-images')) && (await waitingJobs()) === 0)
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
  })

  it('a caller that leaves of an MCP server takes the call of its tool along', async () => {
    let isClosed = false
    upstream.play('dog-images', (_arrival, response) => void response.on('close', () => (isClosed = true)))
    const before = upstream.arrivalsOf('dog-images').length
    const leave = new AbortController()
    const params = { name: 'call_api', arguments: { api: 'dog-images', endpoint: '/random', parameters: {} } }
    const answer = fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: {
        'x-api-key': account.live,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      signal: leave.signal,
    })
    await until(() => upstream.arrivalsOf('dog-images').length > before)
    leave.abort()
    await assert.rejects(answer)
    await until(() => isClosed)
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
  })

  it('a caller that leaves is charged only if a request was sent for its call', async (t) => {
    upstream.play('dog-images', () => undefined)
    const used = async () => {
      const { body } = await send(gateway, '/v1/billing/status', { token: account.token })
      return Number(body.usage.used)
    }
    const leaving = async (arrivals: number) => {
      const calls = sendAll('/v1/call/dog-images/random', 5)
      // On a busy machine a request may take so long that its call makes another.
      await until(async () => upstream.arrivalsOf('dog-images').length >= arrivals)
      await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 5)
      for (const call of calls) call.leave.abort()
      for (const call of calls) assert.equal(await call.answer, 'left')
      await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
    }
    const before = await used()
    const arrived = upstream.arrivalsOf('dog-images').length
    await leaving(arrived + 5)
    assert.equal(await used(), before + 5)
    const queue = new Queue(LANE.name, { connection: redis, prefix: LANE.prefix })
    const resume = async () => {
      await queue.resume()
      await queue.close()
    }
    // The tests that follow need the queue, whatever becomes of this test.
    t.after(resume)
    await queue.pause()
    await leaving(arrived + 5)
    assert.equal(await used(), before + 5)
    await resume()
    // If identical calls could share an answer, the worker fetches it apart from the call.
    upstream.play('mock-data', () => undefined)
    const [call] = sendAll('/v1/call/mock-data/posts?id=77', 1)
    await until(() => upstream.arrivalsOf('mock-data').some(({ url }) => url.endsWith('77')))
    call?.leave.abort()
    assert.equal(await call?.answer, 'left')
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
    assert.equal(await used(), before + 6)
    const [connecting] = sendAll('/v1/call/public-holidays/holidays?year=2026&countryCode=FR', 1)
    await once(silent, 'connection')
    connecting?.leave.abort()
    assert.equal(await connecting?.answer, 'left')
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
    assert.equal(await used(), before + 6)
  })

  it('a caller that leaves does not spoil the answer of one that asks for the same right after', async () => {
    upstream.play('mock-data', async ({ url }) => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      return { id: Number(/\d+$/.exec(url)?.[0]), userId: 1, title: 't', body: 'b' }
    })
    for (let id = 1; id <= 15; id += 1) {
      const path = `/v1/call/mock-data/posts?id=${id}`
      const [call] = sendAll(path, 1)
      await until(() => upstream.arrivalsOf('mock-data').some(({ url }) => url === `/posts/${id}`))
      call?.leave.abort()
      await call?.answer
      const next = await send(gateway, path, { key: account.live })
      assert.equal(next.status, 200, next.text)
    }
    await until(async () => await isCapQuiet(redis, 'mock-data'))
  })

  it('a caller that leaves keeps its place for the callers that wait for the same answer', async (t) => {
    // One worker has all calls, so once it has served a later call it knows of the earlier calls.
    const alone = await startStage({
      isInProcess: true,
      // A busy machine needs seconds until all calls are at the worker.
      caps: { weather: 'concurrency=9,1/10', 'mock-data': undefined },
      timeoutMs: 25_000,
    })
    t.after(() => alone.stop())
    const { gateway, account, redis } = alone
    alone.upstream.play('weather', () => recorded('weather'))
    alone.upstream.play('mock-data', () => recorded('mock-data'))
    const path = (cell: number) => `/v1/call/weather/current?latitude=${cell}&longitude=7`
    const queue = async (length: number): Promise<string[]> => {
      let members: string[] = []
      await until(async () => {
        members = (await capTraces(redis, 'weather')).queue ?? []
        return members.length === length
      })
      return members
    }
    const inFlight = async (count: number) =>
      await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === count)
    assert.equal((await send(gateway, path(1), { key: account.live })).status, 200)
    await inFlight(0)
    const [first] = sendAll(path(2), 1, alone)
    await queue(1)
    const others = sendAll(path(2), 3, alone)
    await until(async () => (await callsAtWorkers(redis)) === 4)
    // They have found the request if a later call has completed.
    assert.equal((await send(gateway, '/v1/call/mock-data/posts?id=20', { key: account.live })).status, 200)
    const [last] = sendAll(path(3), 1, alone)
    const [, behind] = await queue(2)
    first?.leave.abort()
    await inFlight(4)
    assert.equal((await queue(2))[1], behind, 'the call that came last is behind the others still')
    last?.leave.abort()
    for (const { answer } of others) assert.equal(await answer, 200)
    await until(async () => await isCapQuiet(redis, 'weather'))
  })

  it('a caller that leaves before its call was admitted, leaves nothing behind', async () => {
    upstream.play('dog-images', () => dog)
    for (let round = 0; round < 30; round += 1) {
      const [call] = sendAll('/v1/call/dog-images/random', 1)
      await new Promise((resolve) => setTimeout(resolve, round / 4))
      call?.leave.abort()
      await call?.answer
    }
    await until(async () => (await isCapQuiet(redis, 'dog-images')) && (await waitingJobs()) === 0)
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === 0)
  })

  it('a caller that leaves in the middle of an upload, or before its answer has begun, writes no error into the log', async () => {
    const expecting = `POST /v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n`
    for (let count = 0; count < 10; count += 1) {
      const socket = await open(gateway.url)
      socket.write(`${expecting}Content-Length: 100\r\n\r\n{"email":`)
      // The node reads the body now.
      await once(socket, 'data')
      socket.resetAndDestroy()
    }
    const call = { api: 'dictionary', endpoint: '/define', parameters: { word: 'slow' } }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
    const requests = [
      ['/v1/batch', { calls: [call] }],
      ['/mcp', { ...message, params: { name: 'call_apis', arguments: { calls: [call] } } }],
      ['/mcp', { ...message, params: { name: 'call_api', arguments: call } }],
    ] as const
    const inFlight = async () => await redis.zcard(accountKeys.inFlight(account.id, 'test'))
    for (const [path, body] of requests) {
      const text = JSON.stringify(body)
      const socket = await open(gateway.url)
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${account.test}\r\nX-Gateway-Scenario: slow-3000\r\n`
      const accept = 'Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n'
      socket.write(`${head}${accept}Content-Length: ${text.length}\r\n\r\n${text}`)
      await until(async () => (await inFlight()) > 0)
      socket.destroy()
      await until(async () => (await inFlight()) === 0)
    }
    assert.doesNotMatch(await outputUntilNow(gateway), /"level":"error"/)
  })

  it('a caller that leaves the answers to its pipelined requests unread does not slow others and uses no memory', async () => {
    // Each call was answered. Only the long form measures how soon, on a machine that does nothing
    // else.
    const { figures } = await pipelining.run(gateway, 1.5)
    assert.ok(Number(figures.calls) > 0 && Number(figures['memory at most MB']) < 600, JSON.stringify(figures))
  })

  it('calls whose callers left are not logged as errors of the gateway, and have the status 499', async () => {
    const output = await gateway.allOutput()
    assert.doesNotMatch(output, /INTERNAL_ERROR/)
    const lines = output.split('\n').filter((line) => line.includes('"code":"CALL_CANCELLED"'))
    const ended = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'call')
    assert.deepEqual([...new Set(ended.map(({ status }) => status))], [499])
  })
})

/** Calls in the jobs that workers have taken. */
async function callsAtWorkers(redis: Redis): Promise<number> {
  const ids = await redis.lrange(laneKey('active'), 0, -1)
  const jobs = await Promise.all(ids.map((id) => redis.hget(laneKey(id), 'data')))
  return jobs.reduce((sum, data) => sum + storedCalls(JSON.parse(data ?? '{}')).length, 0)
}

/** A connection that sends bytes as they are. */
async function open(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  return socket
}
