import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Queue, Worker } from 'bullmq'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { checkStalledJobs } from '../../workers/stalled-jobs.ts'
import { until } from '../support/gateway.ts'
import { startOwnRedis } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

test('jobs of a dead worker go back to their queue; queues without jobs cost one command for all of them', async (t) => {
  const server = await startOwnRedis()
  const redis = openRedis([server.url], 'blocking', log)
  const names = ['a', 'b', 'c']
  const queues = names.map((name) => new Queue(name, { connection: redis }))
  // They take jobs only when they are told to.
  const workers = names.map(
    (name) =>
      new Worker(name, undefined, { connection: redis, autorun: false, skipStalledCheck: true, stalledInterval: 1 }),
  )
  t.after(async () => {
    await Promise.all([...workers, ...queues].map((it) => it.close()))
    await closeRedis(redis)
    await server.stop()
  })
  const queue = queues[1] ?? assert.fail()
  const worker = workers[1] ?? assert.fail()
  await Promise.all(workers.map((it) => it.waitUntilReady()))

  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  const before = await commands()
  await checkStalledJobs({ redis, workers })
  // The second reading is counted too.
  assert.equal((await commands()) - before - 1, 1)

  const { id = '' } = await queue.add('job', {})
  assert.ok(await worker.getNextJob('token'))
  assert.equal(await queue.getJobState(id), 'active')
  await checkStalledJobs({ redis, workers })
  assert.equal(await queue.getJobState(id), 'active')
  // Its lock ends because nobody renews it.
  await redis.del(`${queue.toKey(id)}:lock`)
  await until(async () => {
    await checkStalledJobs({ redis, workers })
    return (await queue.getJobState(id)) === 'waiting'
  })
})
