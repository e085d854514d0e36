import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { probeNow } from '../../src/local/probe-now.ts'
import { createLog } from '../../src/log.ts'
import { CallQueues } from '../../src/queue/call-queue.ts'
import { parseProbeJob } from '../../src/queue/probe-job.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { testSecrets } from '../support/gateway.ts'
import { borrowRedis } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

async function open(t: TestContext) {
  const server = await borrowRedis()
  t.after(() => server.stop())
  const DATABASE_URL = 'postgres://127.0.0.1/none'
  return loadConfig({ ...testSecrets(), DATABASE_URL, REDIS_URL: server.url, LOG_LEVEL: 'silent' })
}

test('the probes of a start are sent whatever the breaker says, once a start', async (t) => {
  const config = await open(t)
  const slugs = ['weather', 'trivia']
  for (let times = 0; times < 2; times += 1) await probeNow(config, { slugs, name: 'start-1' })
  const redis = openRedis(config.redisUrls, 'blocking', log)
  const queues = new CallQueues(redis, log)
  t.after(async () => {
    await queues.close()
    await closeRedis(redis)
  })
  const jobs = await queues.of('weather').getJobs()
  assert.deepEqual(
    jobs.map(({ id, data }) => [id, parseProbeJob(data).skipsPause]).sort(),
    slugs.map((slug) => [`${slug}-start-1`, true]).sort(),
  )
})

test('the probes of a start that Redis refuses do not count as failures, and leave no connection open', async (t) => {
  const config = await open(t)
  const redis = openRedis(config.redisUrls, 'blocking', log)
  t.after(() => closeRedis(redis))
  // Takes no command that needs memory.
  await redis.config('SET', 'maxmemory', '1')
  await probeNow(config, { slugs: ['weather'], name: 'start-1' })
  await redis.config('SET', 'maxmemory', '0')
  assert.equal(await redis.dbsize(), 0)
})
