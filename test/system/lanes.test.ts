import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { capKeys } from '../../src/redis/keys.ts'
import { readProcesses } from '../../src/telemetry/heartbeat.ts'
import { send } from '../support/client.ts'
import { until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'

/** As many as may wait for one cap. */
const WAITING = 2_000
const BATCH = 50
/** How long a caller of a single call waits. The calls of a batch wait for 55 s at most. */
const TIMEOUT_MS = 600_000
/** For how long their cap is closed at any time. It is less than the time of a call of a batch. */
const CLOSED_MS = 30_000
/** How long a busy machine may take to queue all of them. */
const FULL_MS_MAX = 120_000
const QUEUE = capKeys.of('random-facts', 'shared', 'queue')

describe('lanes', () => {
  let stage: Stage
  let worker: ChildProcess
  let cell = 0

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      workers: 0,
      caps: {
        'random-facts': `concurrency=64,${WAITING}/10`,
        weather: 'concurrency=64,1000000/1',
        currency: undefined,
      },
      timeoutMs: TIMEOUT_MS,
    })
    worker = (await stage.gateway.startProcess('workers/worker.ts')).child
    stage.upstream.play('random-facts', () => recorded('random-facts'))
    stage.upstream.play('weather', () => recorded('weather'))
    stage.upstream.play('currency', () => ({ base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }))
  })
  after(() => stage.stop())

  /** A place that no call has named yet. */
  const weather = async () => {
    cell += 1
    return await send(stage.gateway, `/v1/call/weather/current?latitude=${cell / 10}&longitude=7`, {
      key: stage.account.live,
    })
  }
  const facts = (count: number, signal?: AbortSignal) => {
    const calls = Array.from({ length: BATCH }, (_, n) => ({
      api: 'random-facts',
      endpoint: '/random',
      parameters: { n: `${n}` },
    }))
    const headers = { 'x-api-key': stage.account.live, 'content-type': 'application/json' }
    const body = JSON.stringify({ calls })
    return Array.from({ length: count / BATCH }, async () => {
      const answer = await fetch(`${stage.gateway.url}/v1/batch`, {
        method: 'POST',
        headers,
        body,
        ...(signal ? { signal } : {}),
      })
      return await answer.text()
    })
  }

  it('lanes carry the calls of other APIs while one API has as many waiting calls as it may have', async () => {
    // The cap is closed for a while, so that all calls wait.
    const closeFor = (ms: number) =>
      stage.redis.hset(capKeys.of('random-facts', 'shared', 'state'), { initialisedAt: 0, closed: Date.now() + ms })
    await closeFor(CLOSED_MS)
    const leaving = new AbortController()
    const waiting = facts(WAITING, leaving.signal).map((answer) => answer.catch(() => undefined))
    // If the cap had room for a few calls, they do not wait, and the test makes other calls
    // instead.
    const isFull = async () => {
      await closeFor(CLOSED_MS)
      if ((await stage.redis.zcard(QUEUE)) === WAITING) return true
      const path = '/v1/call/random-facts/random'
      const call = send(stage.gateway, path, { key: stage.account.live, signal: leaving.signal })
      waiting.push(call.then(({ text }) => text).catch(() => undefined))
      return false
    }
    await until(isFull, FULL_MS_MAX)
    for (let call = 0; call < 20; call += 1) {
      await closeFor(CLOSED_MS)
      assert.equal((await weather()).status, 200)
    }
    assert.equal(await stage.redis.zcard(QUEUE), WAITING, 'none of the waiting calls was lost meanwhile')
    const refused = await send(stage.gateway, '/v1/call/random-facts/random', { key: stage.account.live })
    // No request was sent in the window of the cap, so the refusal does not say that the cap is
    // used up.
    assert.equal(refused.body.error.code, 'OVERLOADED', refused.text)
    leaving.abort()
    await Promise.all(waiting)
    await until(async () => (await stage.redis.zcard(QUEUE)) === 0)
    await closeFor(0)
  })

  it('lanes give the calls of the APIs in WORKER_UPSTREAMS to the worker with this setting, and to the other workers when it has ended', async () => {
    const { child: named } = await stage.gateway.startProcess('workers/worker.ts', { WORKER_UPSTREAMS: 'currency' })
    const serving = async () =>
      (await readProcesses(stage.redis, Date.now())).filter(({ serves }) => serves?.join() === 'currency').length
    await until(async () => (await serving()) === 1)
    worker.kill('SIGSTOP')
    // Nodes read every two seconds which lanes the workers serve.
    const ask = (n: number) =>
      send(stage.gateway, `/v1/call/currency/latest?n=${n}`, {
        key: stage.account.live,
        signal: AbortSignal.timeout(3_000),
      })
    let count = 0
    await until(async () => {
      count += 1
      return (await ask(count).catch(() => undefined))?.status === 200
    })
    worker.kill('SIGCONT')
    named.kill('SIGTERM')
    await until(async () => (await serving()) === 0)
    await until(async () => (await ask(1_000).catch(() => undefined))?.status === 200)
  })
})
