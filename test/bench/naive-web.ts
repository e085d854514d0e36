import { Queue, QueueEvents } from 'bullmq'
import { Redis } from 'ioredis'
import { createFixtureApp, fixtureOptions, serveFixture } from './fixture-admission.ts'

/**
 * A queue-backed proxy as people usually write it: add a job, wait until it is finished, answer
 * with its return value.
 */
const { redisUrl } = fixtureOptions()
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
const app = await createFixtureApp(connection)
// Results stay for a while. If BullMQ removed a job at once, the job could be gone before its
// waiter looks.
const queue = new Queue('calls', { connection, defaultJobOptions: { removeOnComplete: 1_000, removeOnFail: 1_000 } })
queue.setMaxListeners(0)
const events = new QueueEvents('calls', { connection: connection.duplicate() })
await events.waitUntilReady()

app.get('/*', async (request, reply) => {
  const job = await queue.add('call', { path: request.url })
  const { status, body } = await job.waitUntilFinished(events, 30_000)
  return reply.status(status).type('application/json').send(body)
})
await serveFixture(app)
