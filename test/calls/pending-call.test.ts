import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { KnownFromReplies } from '../../src/admission/known-from-replies.ts'
import { completeCall } from '../../src/calls/end-async-call.ts'
import { awaitCall } from '../../src/calls/pending-call.ts'
import { awaitReach } from '../../src/calls/withdraw-call.ts'
import { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { openDatabase } from '../../src/db/database.ts'
import { GatewayError } from '../../src/errors.ts'
import { CallEndBatcher } from '../../src/limits/call-end-batcher.ts'
import { createLog } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { CallQueues, removeCall } from '../../src/queue/call-queue.ts'
import { ReplyInbox, sendReply } from '../../src/queue/reply.ts'
import type { Reply } from '../../src/queue/reply-head.ts'
import { storeResult } from '../../src/queue/results.ts'
import { SHARED_BUCKET, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { openRedis } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis: directly, url } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')
// Nothing here reads a row, so no connection to the database is made.
const db = openDatabase('postgres://127.0.0.1:1/none', log)
const directQueues = new CallQueues(directly, log)
const catalog = await loadCatalog(new Map())
const caps = new UpstreamCaps({ redis: directly, db, catalog })
after(async () => {
  await directQueues.close()
  await db.destroy()
})

/**
 * Each call has a node of its own, so that the end of one call does not end the others. A proxy may
 * stand before its Redis.
 */
function openNode(t: TestContext, redis = directly, queues = directQueues) {
  const replies = new ReplyInbox(openRedis([url], 'blocking', log), redis, log)
  const callEnds = new CallEndBatcher(redis, log)
  replies.open()
  t.after(async () => {
    await callEnds.close()
    await replies.close()
  })
  const config = { callTimeoutMs: 5_000 }
  return {
    redis,
    queues,
    replies,
    callEnds,
    log,
    clock: Date,
    config,
    caps,
    known: new KnownFromReplies(),
    health: { usualMs: () => undefined },
    telemetry: { tracing: undefined },
  }
}

type Node = ReturnType<typeof openNode>

const identity = (): { id: string; accountId: string } => ({
  id: `call_${randomUUID().replaceAll('-', '')}`,
  accountId: randomUUID(),
})

/** A call of an account over a node; no worker takes it. */
function call(node: Node, waitMs?: number, { id, accountId } = identity()) {
  const { replies } = node
  const limitsAcquiredAt = Date.now()
  const isAsync = waitMs !== undefined
  const job: CallJob = {
    ...{ v: 1, id, accountId, mode: 'live', slug: 'currency', endpoint: '/latest', parameters: {}, extra: [] },
    ...{ raw: false, isAsync, replyTo: replies.stream, limitsAcquiredAt, deadline: limitsAcquiredAt + 60_000 },
  }
  const queueing = { etaMs: 0, ofJob: {}, mustNotRepeat: false }
  const socket = new Socket()
  const isQueued = async () => (await directQueues.of('currency').getJobState(id)) === 'waiting'
  const preference = { waitMs, applied: undefined }
  const arrival = { origin: { requestId: 'req_test', via: 'call' as const }, startedAt: 0, span: undefined }
  const ended = awaitCall(node, { job, queueing, preference, arrival }, socket)
  void ended.then((end) => void (end.kind === 'failed' && node.callEnds.end(job, end.verdict)))
  return { ended, job, isQueued, socket }
}

const end = ({ replies }: Node) => replies.rejectAll(new GatewayError('DRAINING'))

test('an asynchronous call whose node shuts down, or whose caller leaves, goes on and is answered as a pending call', async (t) => {
  for (const isNodesEnd of [true, false]) {
    const node = openNode(t)
    const { ended, isQueued, socket } = call(node, 5_000)
    await until(isQueued)
    if (isNodesEnd) end(node)
    else socket.destroy()
    assert.deepEqual(await ended, { kind: 'accepted' })
    assert.equal(await isQueued(), true)
  }
})

test('an asynchronous call whose kept result its node cannot read is answered as a pending call, because it is charged', async (t) => {
  const { redis, proxy } = await connectThroughProxy(t, url, 'producer')
  const node = openNode(t, redis)
  const { ended, job, isQueued } = call(node, 5_000)
  await until(isQueued)
  proxy.cut()
  await until(() => redis.status !== 'ready')
  const { id, accountId } = job
  const [times, body] = [{ queueMs: 0, permitMs: 0, upstreamMs: 1, attempts: 1 }, Buffer.from('{}')]
  await storeResult(directly, { id, accountId }, { head: { id, times }, body })
  await sendReply(directly, job, { head: { id, times, storedFor: accountId }, body: Buffer.alloc(0) })
  assert.deepEqual(await ended, { kind: 'accepted' })
})

test('a call is withdrawn if its node is shutting down or has shut down, and the answer says to send it again', async (t) => {
  const node = openNode(t)
  const first = call(node)
  await until(first.isQueued)
  end(node)
  for (const { ended, isQueued } of [first, call(node)]) {
    const outcome = await ended
    assert.ok(outcome.kind === 'failed')
    assert.equal(outcome.error.code, 'DRAINING')
    await until(async () => !(await isQueued()))
  }
})

test('a call that could not be queued leaves the wait queue when Redis is back', async (t) => {
  const { redis, proxy } = await connectThroughProxy(t, url, 'producer')
  // The cap restores nothing from Postgres.
  await directly.set(keys.rememberedSince, 0)
  const queues = new CallQueues(redis, log)
  t.after(() => queues.close())
  const node = { ...openNode(t, redis, queues), caps: new UpstreamCaps({ redis, db, catalog }) }
  const entry: WaitQueueEntry = {
    ...{ ...identity(), isAsync: false, weight: 1, slug: 'currency', bucket: SHARED_BUCKET },
  }
  const cap = caps.of({ slug: 'currency' }, SHARED_BUCKET)
  await cap.joinWaitQueue(entry, Date.now() + 60_000)
  assert.equal((await cap.read()).ahead, 1)
  proxy.cut()
  await until(() => redis.status !== 'ready')
  const outcome = await call(node, undefined, entry).ended
  assert.ok(outcome.kind === 'failed', JSON.stringify(outcome))
  assert.equal(outcome.error.code, 'DEPENDENCY_UNAVAILABLE')
  proxy.heal()
  await until(async () => (await cap.read()).ahead === 0, 10_000)
})

test('an asynchronous call that Redis queued without a reply is withdrawn, and counted once although a worker had it', async (t) => {
  const { redis, proxy } = await connectThroughProxy(t, url, 'producer')
  const queues = new CallQueues(redis, log)
  t.after(() => queues.close())
  const node = openNode(t, redis, queues)
  proxy.delay(150)
  const { ended, job, isQueued } = call(node, 5_000)
  await until(isQueued)
  proxy.reset()
  proxy.heal()
  const outcome = await ended
  assert.ok(outcome.kind === 'failed', JSON.stringify(outcome))
  assert.equal(outcome.error.code, 'DEPENDENCY_UNAVAILABLE')
  await completeCall(directly, job, { reach: 'answered' })
  await until(async () => !(await isQueued()))
  await node.callEnds.close()
  const pending = Object.entries(await directly.hgetall(keys.usagePending))
  assert.deepEqual(
    pending.filter(([field]) => field.includes(job.accountId)).map(([, calls]) => Number(calls)),
    [1],
  )
})

test('a call is inspected and removed from its queue in one atomic step, so that no worker can start or end it in between', async (t) => {
  const { redis, proxy } = await connectThroughProxy(t, url, 'producer')
  const queues = new CallQueues(redis, log)
  t.after(() => queues.close())
  // From then on Redis knows BullMQ's script.
  assert.equal(await removeCall(queues.of('currency'), 'call_none'), undefined)
  const node = openNode(t)
  const { ended, isQueued, job } = call(node)
  await until(isQueued)
  proxy.loseReplies()
  const removing = assert.rejects(removeCall(queues.of('currency'), job.id))
  await until(async () => !(await isQueued()), 5_000)
  proxy.reset()
  await removing
  end(node)
  await ended
})

test('if BullMQ reports a call as removed, a reply that has arrived still decides how far the call got', async () => {
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const none = Promise.withResolvers<Reply>().promise
  for (const reach of ['unsent', 'maybe-sent'] as const) {
    const removal = { isRemoved: true, reach }
    for (const replied of ['unsent', 'sent'] as const) {
      const reply = Promise.resolve({ head: { id: 'call_a', times, reach: replied }, body: Buffer.alloc(0) })
      assert.equal(await awaitReach(removal, reply), replied)
    }
    assert.equal(await awaitReach(removal, none), reach)
  }
})
