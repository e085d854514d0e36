import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { fixtureOptions } from './fixture-admission.ts'

/** The worker of the usual queue-backed proxy. */
const { redisUrl, upstreamUrl } = fixtureOptions()
const worker = new Worker(
  'calls',
  async (job) => {
    const response = await fetch(upstreamUrl + job.data.path, { headers: { accept: 'application/json' } })
    return { status: response.status, body: await response.text() }
  },
  { connection: new Redis(redisUrl, { maxRetriesPerRequest: null }), concurrency: 50 },
)
process.on('disconnect', () => process.exit(0))
await worker.waitUntilReady()
process.send?.({ ready: true })
