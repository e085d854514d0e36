import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { RedisClock } from '../../src/redis/clock.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { type Services, startServices } from '../support/services.ts'

let services: Services
let redis: RedisConnection
const log = createLog({ level: 'silent', pretty: false }, 'test')
before(async () => {
  services = await startServices()
  redis = openRedis([services.redisUrl], 'blocking', log)
})
after(async () => {
  await closeRedis(redis)
  await services.stop()
})

it('a step of the machine’s clock does not move the clock of Redis as this process sees it', async (t) => {
  const clock = new RedisClock(redis, log)
  clock.open()
  t.after(() => clock.close())
  const redisNow = async () => {
    const [seconds, microseconds] = await redis.time()
    return Number(seconds) * 1_000 + Number(microseconds) / 1_000
  }
  await until(async () => Math.abs(clock.now() - (await redisNow())) < 100)
  assert.ok(Number.isInteger(clock.now()), 'jobs hold whole milliseconds')
  const machineNow = Date.now
  t.after(() => {
    Date.now = machineNow
  })
  for (const stepMs of [60_000, -60_000]) {
    Date.now = () => machineNow() + stepMs
    assert.ok(Math.abs(clock.now() - (await redisNow())) < 1_000, `a step of ${stepMs} ms`)
  }
})

it('a slow answer of Redis corrects the clock of a machine that is ahead, and the process soon requests a quicker answer', async (t) => {
  const { redis: slow, proxy } = await connectThroughProxy(t, services.redisUrl, 'blocking')
  const samples = async () => Number(/^cmdstat_time:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1])
  const machineNow = Date.now
  t.after(() => {
    Date.now = machineNow
  })
  // A machine whose clock is ahead.
  Date.now = () => machineNow() + 30_000
  const clock = new RedisClock(slow, log)
  Date.now = machineNow
  assert.ok(clock.now() > machineNow() + 20_000)
  proxy.delay(200)
  const before = await samples()
  clock.open()
  t.after(() => clock.close())
  await until(() => Math.abs(clock.now() - machineNow()) < 1_000, 10_000)
  await until(async () => (await samples()) >= before + 2, 10_000)
  proxy.heal()
})
