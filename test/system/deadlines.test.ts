import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { capKeys } from '../../src/redis/keys.ts'
import { isCapQuiet } from '../support/cap-state.ts'
import { type Account, type Answer, send } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { laneKey } from '../support/lane.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

/** The time of every call, milliseconds. It is enough for ten calls on a busy machine. */
const DEADLINE_MS = 4_000
const DOG = '/v1/call/dog-images/random'
const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }

describe('a call past its deadline', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: Redis
  /** The only worker. */
  let worker: ChildProcess

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      workers: 0,
      caps: {
        'random-facts': 'concurrency=50,10000/1',
        'dog-images': 'concurrency=50,10000/1',
        'mock-data': undefined,
      },
      timeoutMs: DEADLINE_MS,
    })
    ;({ gateway, upstream, account, redis } = stage)
    worker = await startWorker()
  })
  after(() => stage.stop())

  const startWorker = async () => (await gateway.startProcess('workers/worker.ts')).child
  const kill = async (child: ChildProcess) => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const call = (path: string, url = gateway.url): Promise<Answer> => send(gateway, path, { key: account.live, url })

  it('a call past its deadline never reaches the upstream', async () => {
    upstream.play('dog-images', () => dog)
    await kill(worker)
    const before = upstream.arrivalsOf('dog-images').length
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(DOG)))
    for (const { status, text, headers } of answers) {
      assert.equal(status, 503, text)
      assert.ok(text.includes('DEADLINE_EXCEEDED'), text)
      assert.ok(headers.get('retry-after'))
    }
    worker = await startWorker()
    assert.equal((await call(DOG)).status, 200)
    await until(async () => await isCapQuiet(redis, 'dog-images'))
    assert.equal(upstream.arrivalsOf('dog-images').length - before, 1)
  })

  it('a call past its deadline that the upstream used up is 502 UPSTREAM_TIMEOUT in the time of its attempt', async () => {
    upstream.play('mock-data', () => undefined)
    const startedAt = performance.now()
    const headers = { 'x-gateway-scenario': 'slow-60000' }
    // A test call with the scenario of a slow answer rehearses the same failure.
    const rehearsed = send(gateway, '/v1/call/mock-data/comments', { key: account.test, headers })
    const answers = await Promise.all([1, 1, 2].map((id) => call(`/v1/call/mock-data/posts?id=${id}`)))
    const tookMs = performance.now() - startedAt
    answers.push(await rehearsed)
    for (const { status, text } of answers) {
      assert.equal(status, 502, text)
      assert.ok(text.includes('UPSTREAM_TIMEOUT'), text)
    }
    // Two thirds of the time that a caller waits, so that there is no time for a second attempt.
    assert.ok(tookMs >= (DEADLINE_MS * 2) / 3 - 40, `${tookMs} ms`)
    assert.equal(upstream.arrivalsOf('mock-data').length, 2)
  })

  it('a call past its deadline never reaches the upstream either when its node was killed', async () => {
    await kill(worker)
    const { url, child } = await gateway.startWebProcess()
    const before = upstream.arrivalsOf('dog-images').length
    const calls = Array.from({ length: 10 }, () => call(DOG, url).catch(() => 'no answer'))
    const jobs = (): Promise<number> => redis.llen(laneKey('wait'))
    const queued = (): Promise<number> => redis.zcard(capKeys.of('dog-images', 'shared', 'queue'))
    await until(async () => (await queued()) === 10 && (await jobs()) > 0)
    const queuedAt = performance.now()
    child.kill('SIGKILL')
    await Promise.all(calls)
    await until(() => performance.now() - queuedAt > DEADLINE_MS + 100)
    assert.ok((await jobs()) > 0)
    worker = await startWorker()
    await until(async () => (await jobs()) === 0)
    assert.equal((await call(DOG)).status, 200)
    assert.equal(upstream.arrivalsOf('dog-images').length - before, 1)
  })
})
