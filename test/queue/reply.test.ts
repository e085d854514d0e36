import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { encodeFrame } from '../../src/queue/frame.ts'
import { type ReplyAddress, ReplyInbox, sendReply } from '../../src/queue/reply.ts'
import type { Reply } from '../../src/queue/reply-head.ts'
import { keys } from '../../src/redis/keys.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis, url } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')

/** Longest that a stream may live without its node, seconds. */
const STREAM_SECONDS = 120

function replyTo(stream: string): [ReplyAddress, Reply] {
  const id = `call_${randomUUID().replaceAll('-', '')}`
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  return [
    { id, accountId: randomUUID(), replyTo: stream },
    { head: { id, times }, body: Buffer.from('{}') },
  ]
}

async function openInbox(t: TestContext) {
  const { redis: reader, proxy } = await connectThroughProxy(t, url, 'blocking')
  const inbox = new ReplyInbox(reader, redis, log)
  t.after(() => inbox.close())
  return { inbox, proxy }
}

/**
 * Its lifetime from the moment when it exists, even if its maker sets a lifetime a round trip
 * later.
 */
async function lifetimeOnceMade(stream: string): Promise<number> {
  await until(async () => (await redis.exists(stream)) === 1)
  return await redis.ttl(stream)
}

async function redisMs(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
}

test('a reply to a node that is gone makes a stream that has its lifetime from the start, as the worker may be killed', async (t) => {
  const { redis: worker, proxy } = await connectThroughProxy(t, url, 'blocking')
  const stream = keys.replies(randomUUID())
  proxy.delay(150)
  const sending = sendReply(worker, ...replyTo(stream))
  const lifetime = await lifetimeOnceMade(stream)
  assert.ok(lifetime > 0 && lifetime <= STREAM_SECONDS, `${lifetime} s`)
  proxy.heal()
  await sending
})

test('the stream of a node has its lifetime from the start, as the node may be killed', async (t) => {
  const { inbox, proxy } = await openInbox(t)
  proxy.delay(150)
  inbox.open()
  const lifetime = await lifetimeOnceMade(inbox.stream)
  assert.ok(lifetime > 0 && lifetime <= STREAM_SECONDS, `${lifetime} s`)
})

test('a node renews its stream after the clock of its machine was set back', async (t) => {
  const { inbox } = await openInbox(t)
  inbox.open()
  await lifetimeOnceMade(inbox.stream)
  const [machineNow, elapsed] = [Date.now, performance.now.bind(performance)]
  t.after(() => {
    Date.now = machineNow
    performance.now = elapsed
  })
  Date.now = () => machineNow() - 3_600_000
  performance.now = () => elapsed() + 6_000
  await redis.expire(inbox.stream, STREAM_SECONDS / 2)
  // Wakes the node's read.
  await sendReply(redis, ...replyTo(inbox.stream))
  await until(async () => (await redis.ttl(inbox.stream)) > STREAM_SECONDS / 2, 10_000)
})

test('a node gets a reply that made its stream anew because Redis lost it', async (t) => {
  const { inbox } = await openInbox(t)
  inbox.open()
  await lifetimeOnceMade(inbox.stream)
  for (const isLost of [false, true]) {
    const [address, reply] = replyTo(inbox.stream)
    const awaited = inbox.awaitReply(address.id)
    if (isLost) await redis.del(inbox.stream)
    // Ids of entries are times. No Redis loses a stream and gets an entry within a millisecond.
    const readAt = await redisMs()
    await until(async () => (await redisMs()) > readAt)
    await sendReply(redis, address, reply)
    assert.deepEqual((await awaited.reply).body, reply.body)
  }
})

test('a reply that cannot be read keeps no reply of the same entry from its caller', async (t) => {
  const { inbox } = await openInbox(t)
  inbox.open()
  const [address, reply] = replyTo(inbox.stream)
  const { reply: received } = inbox.awaitReply(address.id)
  await until(async () => (await redis.exists(inbox.stream)) === 1)
  const frame = encodeFrame(reply.head, reply.body)
  const noHead = Buffer.from('\0\0\0\x04null')
  await redis.xadd(inbox.stream, '*', 'r', Buffer.from('no frame'), 'r', noHead, 'r', frame)
  assert.equal((await received).head.id, address.id)
})
