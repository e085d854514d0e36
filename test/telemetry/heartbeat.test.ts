import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { DroppedRows } from '../../src/telemetry/dropped-rows.ts'
import { readProcesses, startHeartbeat } from '../../src/telemetry/heartbeat.ts'
import { until } from '../support/gateway.ts'
import { connectRedis } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

it('a process whose Redis is full still reports that it is alive, and that it shuts down', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  await redis.call('CONFIG', 'SET', 'maxmemory', '1')
  await assert.rejects(redis.set('any', ''), /^RedisError: OOM/)
  const heartbeat = startHeartbeat({
    apis: () => ({}),
    refused: () => [],
    droppedRows: { lately: () => [] },
    redis,
    kind: 'worker',
    inFlight: () => 0,
    now: Date.now,
    log,
  })
  t.after(heartbeat.close)
  const isDraining = async () => (await readProcesses(redis, Date.now())).map((process) => process.isDraining).join()
  await until(async () => (await isDraining()) === 'false')
  heartbeat.drain()
  await until(async () => (await isDraining()) === 'true')
})

it('a process says how many rows of the log of calls it has dropped, until it dropped none for five minutes', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  let now = Date.now()
  const droppedRows = new DroppedRows({ inc: () => undefined }, () => now)
  droppedRows.add('postgres', 20)
  droppedRows.add('postgres')
  const heartbeat = startHeartbeat({
    apis: () => ({}),
    refused: () => [],
    droppedRows,
    redis,
    kind: 'web',
    inFlight: () => 0,
    now: () => now,
    log,
  })
  t.after(heartbeat.close)
  const said = async () => (await readProcesses(redis, now)).flatMap(({ dropped = [] }) => dropped)
  await until(async () => (await said()).length === 1)
  assert.deepEqual(await said(), [{ reason: 'postgres', rows: 21, lastAt: now }])
  now += 300_000
  assert.deepEqual(droppedRows.lately(), [])
  droppedRows.add('size')
  assert.deepEqual(droppedRows.lately(), [{ reason: 'size', rows: 1, lastAt: now }])
})

it('rows that Postgres has not accepted for five seconds are reported until it accepts them', () => {
  let now = 0
  const rows = new DroppedRows({ inc: () => undefined }, () => now)
  rows.wait(3)
  now += 4_999
  assert.deepEqual(rows.lately(), [])
  rows.wait(8)
  now += 1
  assert.deepEqual(rows.lately(), [{ reason: 'waiting', rows: 8, lastAt: now }])
  rows.wait(0)
  assert.deepEqual(rows.lately(), [])
})
