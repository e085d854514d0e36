import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { applySettings, type Catalog, loadCatalog } from '../../src/catalog/catalog.ts'
import { createLog } from '../../src/log.ts'
import { CallQueues } from '../../src/queue/call-queue.ts'
import { probeScheduler } from '../../src/queue/probe-job.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { ProbeSchedule } from '../../workers/probe-schedule.ts'
import { type Services, startServices } from '../support/services.ts'

describe('the schedule of probes', () => {
  let services: Services
  let redis: RedisConnection
  let queues: CallQueues
  let catalog: Catalog
  let schedule: ProbeSchedule
  const log = createLog({ level: 'silent', pretty: false }, 'test')

  before(async () => {
    services = await startServices()
    redis = openRedis([services.redisUrl], 'blocking', log)
    queues = new CallQueues(redis, log)
    catalog = await loadCatalog(new Map())
    schedule = new ProbeSchedule({ catalog, queues, log })
    await schedule.repair()
  })
  after(async () => {
    await queues.close()
    await closeRedis(redis)
    await services.stop()
  })

  const scheduled = async (slug: string) => {
    const scheduler = await queues.of(slug).getJobScheduler(probeScheduler(slug))
    const jobs = await queues.of(slug).getJobs(['delayed', 'waiting'])
    return {
      hasScheduler: scheduler !== undefined,
      next: scheduler?.next,
      jobs: jobs.filter(({ data }) => data.slug === slug).length,
    }
  }

  it('the schedule of probes keeps the time of the next probe when nothing was lost', async () => {
    const before = await scheduled('weather')
    assert.deepEqual({ ...before, next: 0 }, { hasScheduler: true, next: 0, jobs: 1 })
    await schedule.repair()
    assert.deepEqual(await scheduled('weather'), before)
  })

  it('the schedule of probes is complete again after somebody deleted a queue, a job was lost, or Redis lost everything', async () => {
    const loseJob = async () => {
      const queue = queues.of('weather')
      const id = probeScheduler('weather')
      const { next } = (await queue.getJobScheduler(id)) ?? assert.fail()
      await redis.del(...[`repeat:${id}:${next}`, 'delayed', 'wait'].map((key) => queue.toKey(key)))
    }
    const losses = [() => queues.of('weather').obliterate({ force: true }), loseJob, () => redis.flushall()]
    for (const lose of losses) {
      await lose()
      assert.equal((await scheduled('weather')).jobs, 0, String(lose))
      await schedule.repair()
      const { hasScheduler, jobs } = await scheduled('weather')
      assert.deepEqual({ hasScheduler, jobs }, { hasScheduler: true, jobs: 1 }, String(lose))
    }
  })

  it('the schedule has no probes of an upstream that is not enabled', async () => {
    assert.deepEqual(await scheduled('news'), { hasScheduler: false, next: undefined, jobs: 0 })
  })

  it('probes come as often as the file of an upstream says under its own cap, and leave a cap that an operator has lowered to the calls', async () => {
    const everySeconds = async (slug: string) =>
      ((await queues.of(slug).getJobScheduler(probeScheduler(slug)))?.every ?? Number.NaN) / 1_000
    for (const { slug, upstream, enabled } of catalog.values()) {
      if (enabled) assert.equal(await everySeconds(slug), upstream.probe.everySeconds, slug)
    }
    const api = catalog.get('weather') ?? assert.fail()
    applySettings(api, { caps: { rates: [{ max: 10, seconds: 86_400 }] } })
    await schedule.follow()
    assert.ok(86_400 / (await everySeconds('weather')) < 2)
    assert.equal((await scheduled('weather')).jobs, 1)
    applySettings(api, {})
    await schedule.follow()
    assert.equal(await everySeconds('weather'), api.upstream.probe.everySeconds)
  })
})
