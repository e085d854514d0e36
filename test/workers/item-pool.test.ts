import assert from 'node:assert/strict'
import { it } from 'node:test'
import { rejectOnAbort } from '../../src/async/abort.ts'
import type { PrefetchRule } from '../../src/catalog/cache-rule.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { path, type UpstreamRequest } from '../../src/catalog/upstream-request.ts'
import { createLog } from '../../src/log.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import type { Permit } from '../../workers/permits/permits-in-use.ts'
import { takePrefetched, type UnlessFilled } from '../../workers/upstream/item-pool.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis, url } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')
const api = (await loadCatalog(new Map())).get('weather') ?? assert.fail()
const endpoint = api.upstream.endpoints['/current'] ?? assert.fail()

/** A pool that a request fills with the next five numbers. */
function open(name: string, connection = redis) {
  const rule: PrefetchRule<Record<string, unknown>> = {
    key: () => name,
    request: () => ({ path: path`/numbers` }),
    items: (body) => body as number[],
    take: ({ count }) => Number(count),
    body: (items) => items,
    seconds: 60,
  }
  const pool = { requests: 0, waiting: 0, take, key: upstreamKeys.pool(api.slug, name), answered: Promise.resolve() }
  /** `permit` settles when the call has an item. */
  async function take(count: number, permit = Promise.resolve()): Promise<unknown> {
    const send = async (_request: UpstreamRequest, { ensureNeeded, waitSignal = assert.fail() }: UnlessFilled) => {
      pool.waiting += 1
      await Promise.race([permit, rejectOnAbort(waitSignal)]).finally(() => {
        pool.waiting -= 1
      })
      await ensureNeeded?.({} as Permit)
      pool.requests += 1
      const body = [-4, -3, -2, -1, 0].map((number) => number + 5 * pool.requests)
      await pool.answered
      return { answer: { status: 200, headers: {}, body }, text: undefined, responseClass: undefined }
    }
    const filling = { api, endpoint, rule, parameters: { count }, send }
    return (await takePrefetched({ redis: connection, log }, filling, new AbortController().signal))?.answer.body
  }
  return pool
}

it('a pool of prefetched items gives each item once and in order, and is filled when it has fewer items than a call wants', async () => {
  const pool = open('in order')
  assert.deepEqual([await pool.take(2), await pool.take(2), pool.requests], [[1, 2], [3, 4], 1])
  assert.deepEqual([await pool.take(2), pool.requests], [[6, 7], 2])
  assert.deepEqual([await pool.take(4), pool.requests], [[5, 8, 9, 10], 2])
})

it('a pool of prefetched items gives different items to calls that come together, and a single one of these calls fills it', async () => {
  const pool = open('together')
  const taken = await Promise.all(Array.from({ length: 5 }, () => pool.take(1)))
  assert.deepEqual(taken.flat().toSorted(), [1, 2, 3, 4, 5])
  assert.equal(pool.requests, 1)
})

it('a pool of prefetched items is filled once however long its request waits, and is empty after its lifetime', async () => {
  const pool = open('waiting')
  const { promise, resolve } = Promise.withResolvers<void>()
  pool.answered = promise
  const marker = `${pool.key}:filling`
  const first = pool.take(1)
  await until(() => pool.requests === 1)
  // The fill has waited for a permit for nearly as long as its marker lasts.
  await redis.pexpire(marker, 3_500)
  const second = pool.take(1)
  await until(async () => pool.requests === 2 || (await redis.pttl(marker)) > 3_500)
  assert.equal(pool.requests, 1)
  resolve()
  assert.deepEqual([await first, await second], [[1], [2]])
  const lifeMs = await redis.pttl(pool.key)
  assert.ok(lifeMs > 50_000 && lifeMs <= 60_000, `the pool lives ${lifeMs} ms`)
  await until(async () => (await redis.exists(marker)) === 0)
})

it('a call that has its permit fills the pool while other calls wait for permits to fill it, and these calls take the items that it left', async () => {
  const pool = open('fair')
  const never = new Promise<void>(() => undefined)
  const others = [pool.take(2, never), pool.take(2, never)]
  await until(() => pool.waiting === 2)
  assert.deepEqual(await pool.take(1), [1])
  assert.deepEqual((await Promise.all(others)).flat().toSorted(), [2, 3, 4, 5])
  assert.deepEqual([pool.requests, pool.waiting], [1, 0])
})

it('a call whose permit comes while its pool is filled sends no request, and waits for its permit again if too few items came', async () => {
  const pool = open('beside')
  const { promise, resolve } = Promise.withResolvers<void>()
  pool.answered = promise
  const first = pool.take(4)
  await until(() => pool.requests === 1)
  const permit = Promise.withResolvers<void>()
  const second = pool.take(2, permit.promise)
  await until(() => pool.waiting === 1)
  permit.resolve()
  await until(() => pool.waiting === 0)
  assert.equal(pool.requests, 1)
  resolve()
  assert.deepEqual([await first, await second, pool.requests], [[1, 2, 3, 4], [6, 7], 2])
})

it('a fill whose marker is gone does not remove the marker of another fill of the same pool', async () => {
  const pool = open('lost')
  const { promise, resolve } = Promise.withResolvers<void>()
  pool.answered = promise
  const first = pool.take(1)
  await until(() => pool.requests === 1)
  await redis.set(`${pool.key}:filling`, 'another', 'PX', 60_000)
  resolve()
  assert.deepEqual(await first, [1])
  assert.equal(await redis.get(`${pool.key}:filling`), 'another')
})

it('a call whose request should fill a pool is answered even if the pool cannot be filled', async () => {
  const pool = open('broken')
  const { promise, resolve } = Promise.withResolvers<void>()
  pool.answered = promise
  const first = pool.take(1)
  await until(() => pool.requests === 1)
  // The value is no list, so Redis refuses writes to it.
  await redis.set(pool.key, 'text')
  resolve()
  assert.deepEqual(await first, [1])
})

it('a call that set the marker of a pool fills the pool at once although the reply to its command was lost', async (t) => {
  const { redis: unsteady, proxy } = await connectThroughProxy(t, url, 'blocking')
  const set = unsteady.set.bind(unsteady) as (...args: unknown[]) => Promise<never>
  t.mock.method(unsteady, 'set', (...args: unknown[]) => {
    proxy.loseReplies()
    return set(...args)
  })
  const pool = open('sent again', unsteady)
  const taken = pool.take(1)
  await until(async () => (await redis.exists(`${pool.key}:filling`)) === 1)
  // If the fill called the pool, it would wait for itself until the marker ends.
  await redis.persist(`${pool.key}:filling`)
  t.mock.restoreAll()
  proxy.heal()
  proxy.reset()
  assert.deepEqual(await taken, [1])
})
