import assert from 'node:assert/strict'
import { it } from 'node:test'
import fastify from 'fastify'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { queueBoard } from '../../src/console/queue-board.ts'
import { createLog } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { CallQueues } from '../../src/queue/call-queue.ts'
import { connectOwnRedis } from '../support/services.ts'

const call = (number: number): CallJob => ({
  v: 1,
  id: `call_${String(number).padStart(32, '0')}`,
  accountId: 'a',
  mode: 'live',
  slug: 'geocoding',
  endpoint: '/search',
  parameters: { q: `Rome ${number}${'x'.repeat(300)}` },
  extra: [['token', 'hush-hush']],
  raw: false,
  isAsync: false,
  replyTo: 'agw:{reply-x}',
  enqueuedAt: 1,
  deadline: 2,
})

it('the queue dashboard shows no undeclared parameter and no long text, of a call alone and of calls that share a job', async () => {
  const { redis, stop } = await connectOwnRedis()
  const queues = new CallQueues(redis, createLog({ level: 'silent', pretty: false }, 'test'))
  const app = fastify()
  try {
    await app.register(async (scope) => await queueBoard(scope, { catalog: await loadCatalog(new Map()), queues }))
    await queues.enqueue({ call: call(1), priority: 1, mayShareJob: false })
    await Promise.all([2, 3].map((number) => queues.enqueue({ call: call(number), priority: 2, mayShareJob: true })))
    const { body } = await app.inject('/queues/api/queues?activeQueue=geocoding&status=prioritized&page=1')
    for (const number of [1, 2, 3]) assert.match(body, new RegExp(`Rome ${number}x+…`))
    assert.match(body, /"extra":\[\["token","\[redacted\]"\]\]/)
    assert.doesNotMatch(body, /hush/)
    assert.doesNotMatch(body, /x{200}/)
  } finally {
    await app.close()
    await queues.close()
    await stop()
  }
})
