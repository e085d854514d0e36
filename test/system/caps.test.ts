import assert from 'node:assert/strict'
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
    clock = await startArrivalClock({ body: { id: 'a', text: 't', source: 's', source_url: 'u' } })
    gateway = await startGateway({
      workers: 4,
      environment: {
        ...upstream.environment('mock-data'),
        UPSTREAM_RANDOM_FACTS_URL: clock.url,
        PLAN_LIMITS: UNLIMITED,
        UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=4,10/2',
        UPSTREAM_MOCK_DATA_CAPS: 'concurrency=2,5/30',
        CALL_TIMEOUT_MS: '6000',
      },
    })
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
    await clock.close()
  })

  it('are never exceeded in any rolling window, and hardly wasted, while workers are killed', async () => {
    const calls = Array.from({ length: 200 }, () =>
      send(gateway, '/v1/call/random-facts/random', { key: account.live, headers: { prefer: 'respond-async' } }),
    )
    assert.deepEqual(new Set((await Promise.all(calls)).map(({ status }) => status)), new Set([202]))
    const startedAt = performance.now()
    const starting: Promise<unknown>[] = []
    const killing = setInterval(() => {
      gateway.workers.shift()?.kill('SIGKILL')
      starting.push(gateway.startWorker())
    }, 3_000)
    await until(() => performance.now() - startedAt > 14_000, 20_000)
    clearInterval(killing)
    await Promise.all(starting)
    const arrivals = await clock.arrivals()
    assert.ok(mostInWindow(arrivals, 2_000) <= 10, `${mostInWindow(arrivals, 2_000)} in a window of 10`)
    const elapsed = (arrivals.at(-1)?.at ?? 0) - (arrivals[0]?.at ?? 0)
    const possible = 10 * Math.floor(elapsed / 2_500)
    // How many of the possible ones depends on the machine: gross waste would show here, the figure is printed.
    console.log(`${arrivals.length} of ${possible} possible requests in ${Math.round(elapsed)} ms`)
    assert.ok(arrivals.length >= 0.5 * possible, `${arrivals.length} of ${possible}`)
  })

  it('are shown in the catalog: what is left, and when the next call would have its turn', async () => {
    upstream.play('mock-data', () => ({ id: 1, userId: 1, title: 't', body: 'b' }))
    const limits = async () => (await send(gateway, '/v1/catalog/mock-data')).body.limits
    assert.deepEqual((await limits()).rates, [{ max: 5, seconds: 30, left: 5 }])
    for (const id of [1, 2]) {
      assert.equal((await send(gateway, `/v1/call/mock-data/posts?id=${id}`, { key: account.live })).status, 200)
    }
    // A node keeps what it read for a second.
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
