import assert from 'node:assert/strict'
import { it } from 'node:test'
import { capKeys, channels } from '../../src/redis/keys.ts'
import { publishedDuring } from '../support/published.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis, url } = await redisOfThisFile()

/** A cap that allows one request at once. */
async function open() {
  const world = await new World(redis, { concurrency: 1, rates: [{ max: 500, seconds: 10 }] }).open()
  /** Polls for members, in the order of the numbers that they end with. */
  const acquire = async (members: string[], released: string[] = []): Promise<string[]> => {
    const waiters = members.map((member) => waiterOf(member, Number(member.split('|')[1]) / 100))
    const result = await world.cap.acquire({ waiters, released: { ids: released, meanMs: 10 }, leaseMs: 6_000 })
    return [...result.granted.values()]
  }
  const woken = async (act: () => Promise<unknown>): Promise<string[]> => {
    const messages = await publishedDuring(url, channels.wakeUp, act)
    const name = `${world.cap.name} `
    assert.ok(messages.every((message) => message.startsWith(name)))
    return messages.map((message) => message.slice(name.length))
  }
  return { world, acquire, woken }
}

it('the end of a permit wakes the worker of the first waiter', async () => {
  const { world, acquire, woken } = await open()
  const ids = await acquire(['a|1'])
  assert.deepEqual(await acquire(['a|2', 'a|3']), [])
  assert.deepEqual(await woken(() => world.cap.release({ ids, meanMs: 10 })), ['a|2'])
  assert.equal((await acquire(['a|2'])).length, 1)
})

it('a permit that is given back unused wakes the worker of the first waiter', async () => {
  const { world, acquire, woken } = await open()
  const [permit = assert.fail()] = await acquire(['a|1'])
  assert.deepEqual(await acquire(['a|2', 'a|3']), [])
  assert.deepEqual(await woken(() => world.cap.release({ unused: [permit] })), ['a|2'])
  assert.equal((await acquire(['a|2'])).length, 1)
})

it('a call that leaves while it waits wakes the worker of the next waiter, because its own wake-up may have been sent already', async () => {
  const { world, acquire, woken } = await open()
  const leave = (callId: string) => {
    const entry = { id: callId, accountId: 'a', isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
    return world.cap.leaveWaitQueue(entry)
  }
  const ids = await acquire(['a|1'])
  assert.deepEqual(await acquire(['a|2', 'a|3']), [])
  assert.deepEqual(await woken(() => world.cap.release({ ids, meanMs: 10 })), ['a|2'])
  assert.deepEqual(await woken(() => leave('2')), ['a|3'])
  assert.deepEqual(await woken(() => leave('2')), [], 'it does not wait any more')
})

it('when the limit that the upstream reported is reset, the worker of the first waiter is woken', async () => {
  const { world, acquire, woken } = await open()
  const observed = { observedBy: 'none', remaining: { requests: 0, resetMs: 3_000_000 } }
  await world.cap.applyUpstreamLimit({ ...observed, closedForMs: 3_000_000 })
  assert.deepEqual(await acquire(['a|1', 'a|2']), [])
  assert.deepEqual(await woken(() => world.cap.beginGradually({ forgetsLimit: true })), ['a|1'])
  assert.equal((await acquire(['a|1'])).length, 1)
})

it("a poll wakes the worker of another's waiter that comes before its own", async () => {
  const { acquire, woken } = await open()
  const permits = await acquire(['a|1'])
  assert.deepEqual(await acquire(['a|2']), [])
  assert.deepEqual(await woken(async () => assert.deepEqual(await acquire(['b|3'], permits), [])), ['a|2'])
})

it('a poll of a worker whose own waiter comes first wakes no other worker', async () => {
  const { acquire, woken } = await open()
  const permits = await acquire(['a|1'])
  assert.deepEqual(await acquire(['a|3']), [])
  assert.deepEqual(await woken(async () => assert.equal((await acquire(['b|2'], permits)).length, 1)), [])
})

it("a poll that is left without waiters of its own wakes the worker of another's, for which there is room now", async () => {
  const { world, acquire, woken } = await open()
  const evicted = capKeys.of(world.slug, 'shared', 'evicted')
  const permits = await acquire(['a|0'])
  assert.equal(permits.length, 1)
  assert.deepEqual(await acquire(['b|3', 'b|4']), [])
  const poll = (ids: string[]) => async () => {
    await redis.zadd(evicted, world.now + 1_000, 'a|1')
    const result = await world.cap.acquire({
      ...{ waiters: [waiterOf('a|1', 0.01)], leaseMs: 6_000 },
      released: { ids, meanMs: 10 },
    })
    assert.deepEqual([...result.refused.keys()], ['a|1'])
  }
  assert.deepEqual(await woken(poll([])), [], 'there is no room')
  assert.deepEqual(await woken(poll(permits)), ['b|3'])
  // The wake-up for the evicted call had no use.
  assert.deepEqual(await woken(poll([])), ['b|3'])
})

it('a call that is evicted wakes its worker, which refuses it at once', async () => {
  const world = await new World(redis, { concurrency: 4, rates: [{ max: 1, seconds: 5 }] }).open()
  const call = { account: 'a', weight: 1, isAsync: false }
  await world.join({ ...call, timeoutMs: 30_000 })
  await world.advance(0)
  await world.join({ ...call, timeoutMs: 6_500 })
  await world.advance(5_499)
  world.now += 1
  const messages = await publishedDuring(url, channels.wakeUp, async () => assert.ok(await world.acquireUnqueued('b')))
  assert.deepEqual(messages, [`${world.cap.name} ${world.lastMember}`])
})
