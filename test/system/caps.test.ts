import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { type ArrivalClock, mostInWindow, startArrivalClock } from '../support/arrival-clock.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const UNLIMITED = JSON.stringify({ Free: { perMinute: 100_000, inFlight: 100_000, perMonth: 1_000_000 } })

describe('caps', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let clock: ArrivalClock
  let account: Account

  before(async () => {
    upstream = await startUpstreamServer()
    clock = await startArrivalClock({
      body: { id: 'a', text: 't', source: 's', source_url: 'u', language: 'en', permalink: 'p' },
    })
    gateway = await startGateway({
      isInProcess: true,
      workers: 0,
      environment: {
        ...upstream.environment('mock-data'),
        UPSTREAM_RANDOM_FACTS_URL: clock.url,
        PLAN_LIMITS: UNLIMITED,
        UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=4,10/1',
        UPSTREAM_MOCK_DATA_CAPS: 'concurrency=2,5/30',
        CALL_TIMEOUT_MS: '6000',
      },
    })
    account = await signUp(gateway)
    await Promise.all([startWorker(), startWorker(), startWorker()])
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
    await clock.close()
  })

  /** Worker processes, the oldest first. */
  const workers: ChildProcess[] = []
  const startWorker = async () => void workers.push((await gateway.startProcess('workers/worker.ts')).child)

  it('caps are never exceeded in any rolling window while workers are killed, and every call is made', async () => {
    const count = 60
    const calls = Array.from({ length: count }, () =>
      send(gateway, '/v1/call/random-facts/random', { key: account.live, headers: { prefer: 'respond-async' } }),
    )
    assert.deepEqual(new Set((await Promise.all(calls)).map(({ status }) => status)), new Set([202]))
    for (let kills = 1; kills <= 3; kills += 1) {
      const before = (await clock.arrivals()).length
      await until(async () => (await clock.arrivals()).length >= Math.min(before + 10, count))
      workers.shift()?.kill('SIGKILL')
      // Two workers are left at the end.
      if (kills < 3) await startWorker()
    }
    await until(async () => (await clock.arrivals()).length >= count)
    const arrivals = await clock.arrivals()
    assert.ok(mostInWindow(arrivals, 1_000) <= 10, `${mostInWindow(arrivals, 1_000)} in a window of 10`)
    const elapsed = (arrivals.at(-1)?.at ?? 0) - (arrivals[0]?.at ?? 0)
    // The machine decides how much of the cap was used, so the test prints the figure. The model
    // tests check it.
    console.log(
      `${arrivals.length} of ${10 * Math.ceil(elapsed / 1_000)} possible requests in ${Math.round(elapsed)} ms`,
    )
  })

  it('the catalog shows what is left of caps, and when the next call would be sent', async () => {
    upstream.play('mock-data', () => ({ id: 1, userId: 1, title: 't', body: 'b' }))
    const limits = async () => (await send(gateway, '/v1/catalog/mock-data')).body.limits
    assert.deepEqual((await limits()).rates, [{ max: 5, seconds: 30, left: 5 }])
    for (const id of [1, 2]) {
      assert.equal((await send(gateway, `/v1/call/mock-data/posts?id=${id}`, { key: account.live })).status, 200)
    }
    // A node keeps what it has read for a second.
    await until(async () => (await limits()).rates[0].left === 3)
    const { nextSlotMs, rates, waiting } = await limits()
    assert.deepEqual(
      { nextSlotMs, rates, waiting },
      { nextSlotMs: 0, rates: [{ max: 5, seconds: 30, left: 3 }], waiting: 0 },
    )
    for (const id of [3, 4, 5]) await send(gateway, `/v1/call/mock-data/posts?id=${id}`, { key: account.live })
    await until(async () => (await limits()).rates[0].left === 0)
    const used = await limits()
    assert.ok(used.nextSlotMs > 20_000 && used.nextSlotMs <= 30_500, `${used.nextSlotMs}`)
    const refused = await send(gateway, '/v1/call/mock-data/posts?id=6', { key: account.live })
    assert.equal(refused.body.error.code, 'UPSTREAM_CAP_EXHAUSTED')
    assert.ok(Number(refused.headers.get('retry-after')) >= Math.floor(used.nextSlotMs / 1_000) - 2)
  })
})
