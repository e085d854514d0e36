import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { readProcesses, startHeartbeat } from '../../src/telemetry/heartbeat.ts'
import { until } from '../support/gateway.ts'
import { connectOwnRedis } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

it('a process whose Redis is full says on that it lives, and that it ends', async (t) => {
  const { redis, stop } = await connectOwnRedis()
  t.after(stop)
  await redis.call('CONFIG', 'SET', 'maxmemory', '1')
  await assert.rejects(redis.set('any', ''), /^RedisError: OOM/)
  const heartbeat = startHeartbeat({ apis: {}, redis, kind: 'worker', inFlight: () => 0, now: Date.now, log })
  t.after(heartbeat.close)
  const isDraining = async () => (await readProcesses(redis, Date.now())).map((process) => process.isDraining).join()
  await until(async () => (await isDraining()) === 'false')
  heartbeat.drain()
  await until(async () => (await isDraining()) === 'true')
})
