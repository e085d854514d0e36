import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Worker } from 'bullmq'
import { insertUser } from '../../src/db/users.ts'
import { type CallJob, toJobData } from '../../src/queue/call-job.ts'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import { enqueueProbe, halfOpenProbe, PROBE_JOB, probeScheduler } from '../../src/queue/probe-job.ts'
import { SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { type Heartbeat, startHeartbeat } from '../../src/telemetry/heartbeat.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'

/** A page as text: a line a table row, blanks between cells. */
function textOf(page: string): string {
  return page
    .replace(/<\/tr>/g, '\n')
    .replace(/<[^>]*>/g, ' ')
    .replace(/[^\S\n]+/g, ' ')
}

describe('the pages of the queues', () => {
  let console_: TestConsole
  let accountId: string

  before(async () => {
    console_ = await openTestConsole()
    accountId = randomUUID()
    const ann = { id: accountId, email: 'ann@example.com', passwordHash: 'x', signupNetwork: null }
    await insertUser(console_.context.db, ann)
  })
  after(async () => await console_.stop())

  const get = async (url: string) => await console_.app.inject({ url, headers: console_.bearer })
  const rows = async (slug: string) => textOf((await get(`/queues/${slug}`)).body).split('\n')
  const call = (number: number, more: Partial<CallJob> = {}): CallJob => ({
    ...{ v: 1, id: `call_${String(number).padStart(32, '0')}`, accountId, mode: 'live', slug: 'geocoding' },
    ...{ endpoint: '/search', parameters: { q: `Rome ${number}${'x'.repeat(300)}` }, raw: false, isAsync: false },
    ...{
      extra: [['token', 'hush-hush']],
      replyTo: 'agw:{reply-x}',
      limitsAcquiredAt: Date.now(),
      deadline: Date.now() + 60_000,
    },
    ...more,
  })
  const join = async (job: CallJob) => {
    const { caps, catalog } = console_.context
    const cap = caps.of(catalog.get(job.slug) ?? assert.fail(), SHARED_BUCKET)
    const entry = waitQueueEntry(job, { bucket: SHARED_BUCKET })
    await cap.joinWaitQueue(entry, Date.now() + 600_000)
  }

  it('the pages of the queues show calls with their own job and calls that share a job, without undeclared values and long texts', async () => {
    const { queues } = console_.context
    await queues.enqueue({ call: call(1, { isAsync: true }), mayShareJob: false })
    await Promise.all([2, 3].map((number) => queues.enqueue({ call: call(number), mayShareJob: true })))
    const page = (await get('/queues/geocoding')).body
    const shown = textOf(page)
    for (const number of [1, 2, 3])
      assert.match(
        shown,
        new RegExp(`call_0+${number} .*ann@example\\.com .*/search q= Rome ${number}x+… .*not shown: token`),
      )
    assert.match(shown, /call_0+1 asynchronous/)
    assert.doesNotMatch(page, /hush/)
    assert.doesNotMatch(page, /x{200}/)
    const { calls, more } = (await get('/v1/operator/upstreams/geocoding/queue')).json()
    assert.equal(more, false)
    assert.deepEqual(
      calls.map(({ id, state, ahead, email, undeclared, async: isAsync }: Record<string, unknown>) => [
        String(id).slice(-1),
        ...[state, ahead, email, undeclared, isAsync],
      ]),
      [1, 2, 3].map((number) => [
        String(number),
        ...['waiting-for-worker', null, 'ann@example.com', ['token'], number === 1],
      ]),
    )
    const list = textOf((await get('/queues')).body).split('\n')
    const [first = ''] = list.filter((row) => row.includes('scheduled'))
    assert.match(first, /geocoding .* 3 oldest .* 0 /, 'the fullest queue comes first')
    assert.match(shown, /Pause Probe Disable/)
  })

  it('the pages of the queues tell what runs from what waits for the cap, and in which order it is served', async () => {
    const { queues, config, log } = { ...console_.context, config: console_.config }
    const redis = openRedis(config.redisUrls, 'blocking', log)
    // The jobs of earlier tests are in the same lane.
    await queues.of('mock-data').drain()
    const held = Promise.withResolvers<void>()
    let heartbeat: Heartbeat | undefined
    const options = { connection: redis, prefix: LANE.prefix, concurrency: 2 }
    const worker = new Worker(LANE.name, () => held.promise, options)
    try {
      const calls = [1, 2, 3].map((number) => call(number, { slug: 'mock-data' }))
      const [running, next, last] = calls as [CallJob, CallJob, CallJob]
      await join(next)
      await join(last)
      // A worker takes jobs ahead of their permits.
      for (const each of [running, next, last]) await queues.enqueue({ call: each, mayShareJob: false })
      await until(async () => (await queues.of('mock-data').getJobCounts('active')).active === 2)
      const found = async () =>
        (await rows('mock-data')).flatMap((row) => {
          const state = / (under way at a worker|waiting for .*) call_0+(\d)/.exec(row)
          return state ? [state.slice(1)] : []
        })
      // No worker is alive so far.
      assert.deepEqual(await found(), [
        ['under way at a worker', '1'],
        ['waiting for a worker', '2'],
        ['waiting for a worker', '3'],
      ])
      heartbeat = startHeartbeat({
        ...{ redis: console_.context.redis, kind: 'worker', inFlight: () => 0, apis: () => ({}), refused: () => [] },
        ...{ droppedRows: { lately: () => [] }, now: Date.now, log },
      })
      await until(async () => (await found()).some(([state]) => state === 'waiting for the cap, next'))
      assert.deepEqual(await found(), [
        ['under way at a worker', '1'],
        ['waiting for the cap, next', '2'],
        ['waiting for the cap, 1 call before it', '3'],
      ])
    } finally {
      held.resolve()
      await heartbeat?.close()
      await worker.close()
      await closeRedis(redis)
    }
  })

  it('the pages of the queues show a script in a parameter as text', async () => {
    const script = '<script>alert(1)</script>'
    const hostile = call(4, { slug: 'timezone', parameters: { [script]: script }, extra: [[script, script]] })
    await console_.context.queues.enqueue({ call: hostile, mayShareJob: false })
    const page = (await get('/queues/timezone')).body
    assert.doesNotMatch(page, /<script>alert/)
    assert.equal(page.split('&#60;script&#62;alert(1)').length - 1, 3)
  })

  it('the pages of the queues say which probe is scheduled and which is the half-open attempt, and show jobs that a defect ended, and calls of a later version as far as they are known', async () => {
    const { queues, log } = console_.context
    const queue = queues.of('dictionary')
    // The jobs of earlier tests are in the same lane.
    await queue.drain()
    await enqueueProbe(queues, 'dictionary', { name: 'soon', delayMs: 90_000 })
    await enqueueProbe(queues, 'dictionary', { name: halfOpenProbe(1_795_754_000_123.5), delayMs: 90_000 })
    const data = { v: 1, slug: 'dictionary' }
    await queue.upsertJobScheduler(probeScheduler('dictionary'), { every: 90_000 }, { name: PROBE_JOB, data })
    const redis = openRedis(console_.config.redisUrls, 'blocking', log)
    const broken = async () => await Promise.reject(new Error('no such thing'))
    const worker = new Worker(LANE.name, broken, {
      connection: redis,
      prefix: LANE.prefix,
    })
    try {
      await queue.add('validate-key', { slug: 'dictionary' }, { jobId: 'check' })
      await until(async () => (await queue.getJob('check'))?.isFailed() ?? false)
      // The first job of a scheduler is due at once, and makes the job that comes in 90 seconds.
      await until(async () => (await queue.getJobCounts('delayed')).delayed === 3)
    } finally {
      await worker.close()
      await closeRedis(redis)
    }
    await queue.add(CALL_JOB, { ...Object(toJobData([call(5, { slug: 'dictionary' })])), v: 9, parameters: 'new' })
    const shown = await rows('dictionary')
    for (const title of ['probe', 'half-open attempt', 'scheduled probe'])
      assert.ok(
        shown.some((row) => new RegExp(`^ ?${title} in .* s`).test(row)),
        title,
      )
    assert.ok(shown.some((row) => / validate-key check no such thing /.test(row)))
    assert.ok(shown.some((row) => / call_0+5 .*\/search/.test(row)))
  })

  it('the pages of the queues are not found for an API that the catalog does not have', async () => {
    for (const path of ['/queues/no-such-api', '/v1/operator/upstreams/no-such-api/queue'])
      assert.equal((await get(path)).statusCode, 404)
  })
})
