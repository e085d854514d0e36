import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { ToolCalls } from '../../src/mcp/tool-calls.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { type Services, startServices } from '../support/services.ts'

let services: Services
let redis: RedisConnection
let now = 1_000_000

before(async () => {
  services = await startServices()
  redis = openRedis([services.redisUrl], 'producer', createLog({ level: 'silent', pretty: false }, 'web'))
  await once(redis, 'ready')
})
after(async () => {
  await closeRedis(redis)
  await services.stop()
})

const callsOf = (accountId: string) =>
  new ToolCalls(redis, { accountId, keyId: undefined, network: '192.0.2.1' }, () => now)

it('a call whose node is gone does not keep later calls of the same request id from being cancelled', async () => {
  const calls = callsOf('killed')
  await calls.add(1, 'call_of_the_dead')
  now += 20_000
  await calls.add(1, 'call_of_the_living')
  assert.equal(await calls.find(1), 'call_of_the_living')
  await calls.remove(1, 'call_of_the_living')
  assert.equal(await calls.find(1), 'call_of_the_dead', 'its client may cancel it at another node')
})

it('if two calls wait under the same request id, neither can be found by it', async () => {
  const calls = callsOf('both')
  for (let second = 0; second < 60; second += 1) {
    await calls.add(1, 'call_one')
    await calls.add(1, 'call_two')
    now += 1_000
  }
  assert.equal(await calls.find(1), undefined)
  await calls.remove(1, 'call_two')
  assert.equal(await calls.find(1), 'call_one')
  await calls.remove(1, 'call_one')
  assert.deepEqual(await redis.keys('*both*'), [])
})

it('a call of a node of the previous version, which does not store when it waits, counts as waiting', async () => {
  const calls = callsOf('upgraded')
  await calls.add(1, 'call_new')
  const [key = ''] = await redis.keys(accountKeys.toolCalls('upgraded', 'session', '*').replace(/[{}]/g, '?'))
  await redis.sadd(key, 'call_old')
  now += 60_000
  await calls.add(1, 'call_new')
  assert.equal(await calls.find(1), undefined)
})
