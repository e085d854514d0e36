import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DelayedError, type Job, Queue } from 'bullmq'
import { QueueWorker } from '../../workers/queue/queue-worker.ts'
import { until } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

type Run = (job: Job) => Promise<unknown>

/** A queue of its own and as many workers as there are processors. */
async function open(t: TestContext, runs: Run[], { concurrency = 64 } = {}) {
  const name = `queue-${Math.random().toString(36).slice(2)}`
  const queue = new Queue(name, { connection: redis, defaultJobOptions: { removeOnComplete: true } })
  const options = { connection: redis, concurrency, skipStalledCheck: true, drainDelay: 60 }
  // It has three named parameters, because BullMQ tells by their number whether the processor wants
  // a signal.
  const workers = runs.map((run) => new QueueWorker(name, (job, _token, _signal) => run(job), options))
  t.after(async () => {
    await Promise.all([...workers, queue].map((it) => it.close()))
  })
  const marker = async () => await redis.zrange(queue.toKey('marker'), '0', '-1')
  await Promise.all(workers.map((worker) => worker.waitUntilReady()))
  return { name, queue, workers, options, marker, run: () => workers.map((worker) => worker.run()) }
}

/** Ends when told to, for as many jobs as call it. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

const commandStats = async () => {
  const stats = await redis.info('commandstats')
  const count = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  return { scripts: count('evalsha'), waits: count('bzpopmin') }
}

test('a job that comes alone costs a wait, a look for a job and an end, and no second look', async (t) => {
  const done: string[] = []
  const { queue, run } = await open(t, [async ({ id = '' }) => done.push(id)])
  run()
  const next = async () => {
    const { id = '' } = await queue.add('job', {}, { priority: 1 })
    // The queue removes it when it has ended.
    await until(async () => done.includes(id) && (await redis.exists(queue.toKey(id))) === 0)
  }
  await next()
  const before = await commandStats()
  for (let jobs = 0; jobs < 20; jobs += 1) await next()
  const after = await commandStats()
  // Scripts: added, taken, marker taken away, ended.
  assert.deepEqual([after.scripts - before.scripts, after.waits - before.waits], [80, 20])
})

test('a worker takes jobs that wait together without a wait between them, and looks at the marker twice', async (t) => {
  const done: string[] = []
  const { queue, run } = await open(t, [async ({ id = '' }) => done.push(id)])
  for (let jobs = 0; jobs < 10; jobs += 1) await queue.add('job', {}, { priority: 1 })
  const before = await commandStats()
  run()
  await until(async () => done.length === 10 && (await queue.getActiveCount()) === 0)
  const after = await commandStats()
  assert.ok(after.waits - before.waits <= 1)
  // Each job is taken and ended.
  assert.equal(after.scripts - before.scripts, 22)
})

test('a worker takes many waiting jobs in few round trips', async (t) => {
  const { opened, open: openGate } = gate()
  let taken = 0
  const { queue, run } = await open(t, [
    async () => {
      taken += 1
      await opened
    },
  ])
  for (let jobs = 0; jobs < 50; jobs += 1) await queue.add('job', {}, { priority: 1 })
  const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  const before = await reads()
  run()
  await until(() => taken === 50)
  // 1, then 16 at a time, what the marker's script says between them, and these two readings.
  const after = await reads()
  openGate()
  assert.ok(after - before < 20, `${after - before} reads`)
})

test('a worker runs as many jobs at once as it may, and leaves the others to a worker with room', async (t) => {
  const { opened, open: openGate } = gate()
  const taken: string[][] = [[], []]
  const { queue, workers } = await open(
    t,
    [0, 1].map((index) => async ({ id = '' }: Job) => {
      taken[index]?.push(id)
      await opened
    }),
    { concurrency: 3 },
  )
  workers[0]?.run()
  for (let jobs = 0; jobs < 5; jobs += 1) await queue.add('job', {})
  await until(() => taken[0]?.length === 3)
  // The first worker is full, so jobs that come now go to the other worker, and so do jobs that
  // wait.
  workers[1]?.run()
  await until(() => taken[1]?.length === 2)
  await queue.add('job', {})
  await until(() => taken[1]?.length === 3)
  assert.equal(taken[0]?.length, 3)
  // Both workers are full. The next jobs run as soon as there is room.
  for (let jobs = 0; jobs < 6; jobs += 1) await queue.add('job', {})
  openGate()
  await until(() => taken.flat().length === 12)
})

test('jobs of all kinds that come while workers take other jobs all run, and no marker is left', async (t) => {
  const done: number[] = []
  const runJob = async ({ data }: Job) => {
    if (data % 3 === 0) await new Promise((resolve) => setTimeout(resolve, data % 5))
    done.push(data)
  }
  const { queue, run, marker } = await open(t, [runJob, runJob, runJob], { concurrency: 4 })
  run()
  const sent = 600
  const kinds = [{}, { priority: 3 }, { delay: 4 }, { priority: 1, delay: 2 }]
  for (let number = 0; number < sent; number += 1) {
    const added = queue.add('job', number, kinds[number % kinds.length])
    // Bursts, and pauses in which the workers fall asleep.
    if (number % 7 === 0) await added
    if (number % 20 === 0) await until(() => done.length >= number)
  }
  await until(() => done.length === sent)
  assert.equal(new Set(done).size, sent)
  await until(async () => (await marker()).length === 0)
})

test('a delayed job runs when it is due, even if its marker came with or before other jobs', async (t) => {
  const done: { name: string; lateMs: number }[] = []
  const note = async ({ name, timestamp, opts }: Job) =>
    done.push({ name, lateMs: Date.now() - timestamp - (opts.delay ?? 0) })
  const { queue, run } = await open(t, [note])
  run()
  // Without a delayed job the wait lasts a minute.
  await queue.add('later', {}, { delay: 400 })
  await queue.add('now', {})
  await queue.add('soon', {}, { delay: 200 })
  await until(() => done.length === 3, 10_000)
  const early = done.filter(({ lateMs }) => lateMs < 0)
  assert.deepEqual(early, [])
})

test('a job that its processor hands back runs again', async (t) => {
  let tries = 0
  const { queue, run } = await open(t, [
    async (job) => {
      tries += 1
      if (tries > 1) return
      await job.moveToDelayed(Date.now() + 50, job.token)
      throw new DelayedError()
    },
  ])
  run()
  await queue.add('job', {})
  await until(() => tries === 2, 10_000)
})

test('a worker takes no jobs of a paused queue until the queue is resumed', async (t) => {
  const done: string[] = []
  const { queue, run } = await open(t, [async ({ name }) => done.push(name)])
  await queue.pause()
  run()
  await queue.add('job', {}, { priority: 1 })
  // If a worker has looked at the queue since then, it left the queue alone.
  const { scripts } = await commandStats()
  await redis.zadd(queue.toKey('marker'), 0, '0')
  await until(async () => (await commandStats()).scripts > scripts)
  assert.deepEqual(done, [])
  await queue.resume()
  await until(() => done.length === 1, 10_000)
})

test('a lost blocking connection costs no job', async (t) => {
  const done: string[] = []
  const { queue, run, workers } = await open(t, [async ({ name }) => done.push(name)])
  workers[0]?.on('error', () => undefined)
  run()
  await queue.add('first', {})
  await until(() => done.length === 1)
  const blocked = async () => [...String(await redis.client('LIST')).matchAll(/^id=(\d+).* flags=b/gm)]
  await until(async () => (await blocked()).length === 1)
  for (const [, id = ''] of await blocked()) await redis.client('KILL', 'ID', id)
  await queue.add('second', {})
  await until(() => done.length === 2, 20_000)
})

test('a worker that closes waits for its running jobs and takes no other', async (t) => {
  const { opened, open: openGate } = gate()
  const started: string[] = []
  const ended: string[] = []
  const { queue, workers, run } = await open(t, [
    async ({ name }) => {
      started.push(name)
      await opened
      ended.push(name)
    },
  ])
  const [running] = run()
  await queue.add('runs', {})
  await until(() => started.length === 1)
  let isClosed = false
  const closing = workers[0]?.close().then(() => {
    isClosed = true
  })
  await until(async () => !/flags=b/.test(String(await redis.client('LIST'))))
  await queue.add('waits', {})
  assert.equal(isClosed, false)
  openGate()
  await closing
  await running
  assert.deepEqual([started, ended, await queue.getWaitingCount()], [['runs'], ['runs'], 1])
  assert.equal(workers[0]?.isRunning(), false)
})

/** Adds a job, closes the first of two workers at that moment, and returns which worker ran it. */
async function closeBesideNewJob(t: TestContext): Promise<'closing' | 'other'> {
  const ranBy: ('closing' | 'other')[] = []
  const { queue, workers } = await open(t, [async () => ranBy.push('closing'), async () => ranBy.push('other')])
  const blocked = async () => [...String(await redis.client('LIST')).matchAll(/ flags=b/g)].length
  // Redis gives a marker to the worker that has waited longest.
  for (const [index, worker] of workers.entries()) {
    worker.run()
    await until(async () => (await blocked()) === index + 1)
  }
  const adding = queue.add('job', {})
  for (let turns = 0; turns < 50; turns += 1) await null
  // Written after the promises of this tick, and before the process reads the answers of Redis.
  await new Promise((resolve) => setImmediate(resolve))
  for (const end = performance.now() + 100; performance.now() < end; );
  const closing = workers[0]?.close()
  await Promise.all([adding, closing])
  await until(() => ranBy.length === 1, 10_000)
  await Promise.all(workers.map((worker) => worker.close()))
  return ranBy[0] ?? 'closing'
}

test('a job whose marker a closing worker took is run by another worker at once', async (t) => {
  // On a busy machine the answer of Redis may be read before the worker begins to close, so that
  // the worker runs the job.
  let attempts = 1
  while ((await closeBesideNewJob(t)) === 'closing') {
    attempts += 1
    assert.ok(attempts <= 20, 'the worker that closes has run each job')
  }
})
