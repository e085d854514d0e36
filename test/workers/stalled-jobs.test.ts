import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Queue, Worker } from 'bullmq'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { checkStalledJobs, StalledJobs } from '../../workers/stalled-jobs.ts'
import { until } from '../support/gateway.ts'
import { startOwnRedis } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** Queues on a Redis of their own, with workers that take jobs only when they are told to. */
async function open(t: TestContext, names: string[]) {
  const server = await startOwnRedis()
  const redis = openRedis([server.url], 'blocking', log)
  const queues = names.map((name) => new Queue(name, { connection: redis }))
  const workers = names.map(
    (name) =>
      new Worker(name, undefined, { connection: redis, autorun: false, skipStalledCheck: true, stalledInterval: 1 }),
  )
  t.after(async () => {
    await Promise.all([...workers, ...queues].map((it) => it.close()))
    await closeRedis(redis)
    await server.stop()
  })
  await Promise.all(workers.map((it) => it.waitUntilReady()))
  return { redis, queues, workers }
}

test('jobs of a dead worker go back to their queue; queues without jobs cost one command for all of them', async (t) => {
  const { redis, queues, workers } = await open(t, ['a', 'b', 'c'])
  const queue = queues[1] ?? assert.fail()
  const worker = workers[1] ?? assert.fail()

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

test('jobs that run again because their worker died are one warning a queue, with how many they are', async (t) => {
  const { redis, queues, workers } = await open(t, ['a', 'b'])
  for (const { warnEveryMs, counts } of [
    { warnEveryMs: 0, counts: [2, 1] },
    { warnEveryMs: 3_600_000, counts: [2] },
  ]) {
    const warned: unknown[] = []
    const warnings = { warn: (members: object) => void warned.push(members), debug: () => undefined }
    const stalled = new StalledJobs({ redis, workers, everyMs: 5, warnEveryMs, log: warnings })
    stalled.open()
    for (const jobs of [2, 1]) {
      const [queue = assert.fail(), worker = assert.fail()] = [queues[1], workers[1]]
      for (let number = 0; number < jobs; number += 1) await queue.add('job', {})
      const locks: string[] = []
      while (locks.length < jobs) {
        locks.push(`${queue.toKey((await worker.getNextJob('token'))?.id ?? assert.fail())}:lock`)
      }
      // One check finds them together.
      await until(async () => (await redis.scard(queue.toKey('stalled'))) === jobs)
      assert.equal(await redis.del(...locks), jobs)
      await until(async () => (await queue.getWaitingCount()) === jobs)
      if (jobs === 2) await until(() => warned.length === 1)
      await queue.drain()
    }
    if (counts.length === 2) await until(() => warned.length === 2)
    await stalled.close()
    assert.deepEqual(
      warned,
      counts.map((jobs) => ({ slug: 'b', jobs })),
    )
  }
})
