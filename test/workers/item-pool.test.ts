import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { type PrefetchRule, path } from '../../src/catalog/upstream.ts'
import { takePrefetched } from '../../workers/upstream/item-pool.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const api = (await loadCatalog(new Map())).get('weather') ?? assert.fail()
const endpoint = api.upstream.endpoints['/current'] ?? assert.fail()

/** A pool that a request fills with the next five numbers. */
function open(name: string) {
  const rule: PrefetchRule<Record<string, unknown>> = {
    key: () => name,
    request: () => ({ path: path`/numbers` }),
    items: (body) => body as number[],
    take: ({ count }) => Number(count),
    body: (items) => items,
    seconds: 60,
  }
  const pool = { requests: 0, take }
  async function take(count: number): Promise<unknown> {
    const send = async () => {
      pool.requests += 1
      const body = [-4, -3, -2, -1, 0].map((number) => number + 5 * pool.requests)
      return { answer: { status: 200, headers: {}, body }, text: undefined }
    }
    const filling = { api, endpoint, rule, parameters: { count }, send }
    return (await takePrefetched(redis, filling, new AbortController().signal))?.answer.body
  }
  return pool
}

it('a pool of items fetched ahead gives each item once and in order, and is filled when it has fewer than a call wants', async () => {
  const pool = open('in order')
  assert.deepEqual([await pool.take(2), await pool.take(2), pool.requests], [[1, 2], [3, 4], 1])
  assert.deepEqual([await pool.take(2), pool.requests], [[6, 7], 2])
  assert.deepEqual([await pool.take(4), pool.requests], [[5, 8, 9, 10], 2])
})

it('a pool of items fetched ahead gives calls that come together different items, and is filled by one of them', async () => {
  const pool = open('together')
  const taken = await Promise.all(Array.from({ length: 5 }, () => pool.take(1)))
  assert.deepEqual(taken.flat().toSorted(), [1, 2, 3, 4, 5])
  assert.equal(pool.requests, 1)
})
