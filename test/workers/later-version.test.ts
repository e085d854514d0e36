import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Queue } from 'bullmq'
import { createLog } from '../../src/log.ts'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import { laneOfOnly } from '../../src/queue/lanes.ts'
import { ReplyInbox } from '../../src/queue/reply.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { readProcesses } from '../../src/telemetry/heartbeat.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startLocalWorker } from '../support/local-node.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/**
 * A queue with the reply stream of a node. It holds calls of a later version that no worker knows
 * yet.
 */
async function open(t: TestContext) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'blocking', log)
  const replies = new ReplyInbox(openRedis([services.redisUrl], 'blocking', log), redis, log)
  replies.open()
  const lane = laneOfOnly(['currency'])
  const queue = new Queue(lane.name, { connection: redis, prefix: lane.prefix })
  const users: { close: () => Promise<void> }[] = []
  t.after(async () => {
    for (const user of users) await user.close()
    await replies.close()
    await queue.close()
    await closeRedis(redis)
    await services.stop()
  })
  const enqueue = async () => {
    const id = `call_${randomUUID().replaceAll('-', '')}`
    const [enqueuedAt, lifeMs] = [Date.now(), 30_000]
    const call = { id, accountId: 'a', mode: 'live', slug: 'currency', endpoint: '/latest', isAsync: false }
    const data = { ...call, v: 3, replyTo: replies.stream, enqueuedAt, deadline: enqueuedAt + lifeMs, ticket: 'new' }
    await redis.zadd(accountKeys.inFlight('a', 'live'), enqueuedAt + lifeMs, id)
    const answered = replies.awaitReply(id)
    const job = await queue.add(CALL_JOB, data, { jobId: id, attempts: 1 })
    return { job, ...answered }
  }
  return { services, redis, queue, enqueue, users }
}

test('a worker leaves a call of a later version to newer workers for a while, and then answers it', async (t) => {
  const { services, redis, queue, enqueue, users } = await open(t)
  const worker = await startLocalWorker({
    ...testSecrets(),
    ...{ DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder },
    WORKER_UPSTREAMS: 'currency',
  })
  users.push({ close: worker.stop })
  // Operators see which APIs no worker serves, because each worker says what it serves.
  await until(async () => (await readProcesses(redis, Date.now())).some(({ serves }) => serves?.join() === 'currency'))
  const { job, reply } = await enqueue()
  await until(async () => (await queue.getJobState(job.id ?? '')) === 'delayed', 10_000)
  const { head } = await reply
  assert.equal(head.code, 'DEPENDENCY_UNAVAILABLE')
})
