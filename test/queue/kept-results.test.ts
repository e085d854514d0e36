import assert from 'node:assert/strict'
import { it } from 'node:test'
import { KeptResults } from '../../src/queue/kept-results.ts'
import { storeResult } from '../../src/queue/results.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
const ACCOUNT = 'account'

async function keep(id: string, bytes: number): Promise<{ id: string; accountId: string }> {
  await storeResult(redis, { id, accountId: ACCOUNT }, { head: { id, times }, body: Buffer.alloc(bytes, 'x') })
  return { id, accountId: ACCOUNT }
}

it('a kept result is unpacked once for all who fetch it, and each of them gets the same bytes', async () => {
  const results = new KeptResults(redis, 10_000_000)
  const call = await keep('call-1', 1_000_000)
  const bodies = (await Promise.all(Array.from({ length: 50 }, () => results.read(call)))).map((reply) => reply?.body)
  assert.equal(bodies[0]?.length, 1_000_000)
  assert.equal(new Set(bodies).size, 1)
  assert.equal((await results.read(call))?.body, bodies[0])
  assert.equal(await results.read({ ...call, accountId: 'another' }), undefined)
})

it('a result that is not stored yet is looked up again at the next request', async () => {
  const results = new KeptResults(redis, 10_000_000)
  assert.equal(await results.read({ id: 'call-2', accountId: ACCOUNT }), undefined)
  const call = await keep('call-2', 10)
  assert.equal((await results.read(call))?.body.length, 10)
})

it('a kept result that was used least recently is read from Redis again when others need its room', async () => {
  const results = new KeptResults(redis, 2_500_000)
  const [first, ...others] = [
    await keep('call-3', 1_000_000),
    await keep('call-4', 1_000_000),
    await keep('call-5', 1_000_000),
  ]
  assert.ok(first)
  const body = (await results.read(first))?.body
  for (const call of others) await results.read(call)
  const again = (await results.read(first))?.body
  assert.ok(again && again !== body && again.equals(body ?? Buffer.alloc(0)))
  // If a result is larger than all the room, it is served all the same.
  await redis.del(accountKeys.result(ACCOUNT, 'call-3'))
  const large = await keep('call-6', 3_000_000)
  assert.equal((await results.read(large))?.body.length, 3_000_000)
})

it('a look-up of a result that is not stored yet finds nothing, also if results that others read need the room of the cache meanwhile', async () => {
  const results = new KeptResults(redis, 1_500_000)
  const calls = await Promise.all(Array.from({ length: 8 }, (_, index) => keep(`call-7-${index}`, 1_000_000)))
  const missing = Array.from({ length: 8 }, (_, index) => ({ id: `call-8-${index}`, accountId: ACCOUNT }))
  const found = await Promise.all([...calls, ...missing].map((call) => results.read(call)))
  assert.deepEqual(
    found.map((result) => result?.body.length),
    [...Array(8).fill(1_000_000), ...Array(8).fill(undefined)],
  )
})
