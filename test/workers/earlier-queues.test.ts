import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Queue, Worker } from 'bullmq'
import { createLog } from '../../src/log.ts'
import { earlierLaneOf } from '../../src/queue/lanes.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { EarlierQueues } from '../../workers/earlier-queues.ts'
import { until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

const SLUGS = ['weather', 'currency']

/** A worker of this version beside the queues that an earlier version left. */
async function open(t: TestContext, slugs = SLUGS) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'blocking', log)
  const ran: string[] = []
  const queues = slugs.map((slug) => new Queue(slug, { connection: redis, prefix: earlierLaneOf(slug).prefix }))
  const served: string[] = []
  const earlier = new EarlierQueues({
    ...{ redis, slugs: SLUGS, log, clock: { now: Date.now } },
    startWorker: ({ name, prefix }) => {
      served.push(name)
      return new Worker(name, async ({ id = '' }) => void ran.push(id), { connection: redis, prefix })
    },
  })
  t.after(async () => {
    await earlier.close()
    for (const queue of queues) await queue.close()
    await closeRedis(redis)
    await services.stop()
  })
  const beat = async (fields: object | null) => {
    if (fields === null) return void (await redis.hdel(keys.processes, 'earlier'))
    const process = { id: 'earlier', kind: 'web', at: Date.now() + 60_000, startedAt: 0, isDraining: false, ...fields }
    await redis.hset(keys.processes, 'earlier', JSON.stringify(process))
  }
  const left = () => redis.keys('agw:[{]weather[}]:weather:*')
  return { earlier, queues, ran, served, beat, left }
}

test('a worker runs the calls in queues of an earlier version, also in paused queues, and deletes these queues when they are empty', async (t) => {
  const { earlier, queues, ran, beat, left } = await open(t)
  const [weather, currency] = queues as [Queue, Queue]
  await weather.add('call', {}, { jobId: 'prioritised', priority: 5, removeOnComplete: true })
  await weather.upsertJobScheduler('probe', { every: 3_600_000 }, { name: 'probe', opts: { priority: 9 } })
  await currency.pause()
  await currency.add('call', {}, { jobId: 'held', removeOnComplete: true })
  await beat({})
  earlier.open()
  await until(() => ran.includes('prioritised') && ran.includes('held'))
  // A node of the earlier version still fills its queues.
  await weather.add('call', {}, { jobId: 'later', removeOnComplete: true })
  await until(() => ran.includes('later'))
  assert.notEqual((await left()).length, 0)
  await beat(null)
  await until(async () => (await left()).length === 0)
})

test('without a process of an earlier version a worker serves only lanes', async (t) => {
  const { earlier, served, beat, left } = await open(t, [])
  await beat({ hasLanes: true })
  earlier.open()
  await earlier.close()
  assert.deepEqual([served, await left()], [[], []])
})
