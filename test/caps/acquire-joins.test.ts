import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Cap, Waiter } from '../../src/caps/cap.ts'
import { QUEUE_LENGTH_MAX } from '../../src/caps/scripts.ts'
import { capKeys, upstreamKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

/** A cap whose allowed requests at once are all under way. */
async function open({ concurrency = 1, max = 500, seconds = 10 } = {}) {
  const world = await new World(redis, { concurrency, rates: [{ max, seconds }] }).open()
  const poll = async (waiters: Waiter[], ids: string[] = []) =>
    await world.cap.acquire({ waiters, released: { ids, meanMs: 0 }, leaseMs: 60_000 })
  const { granted } = await poll(Array.from({ length: concurrency }, (_, index) => waiterOf(`first|${index}`)))
  const queue = () => redis.zrange(capKeys.of(world.slug, 'shared', 'queue'), '0', '-1')
  return { world, poll, queue, underWay: [...granted.values()] }
}

function joinedTag({ joined }: Awaited<ReturnType<Cap['acquire']>>, member: string): number {
  return joined.get(member) ?? assert.fail(`${member} did not join the queue`)
}

it('a waiter without a place joins the queue behind the calls that wait, and is granted in its turn', async () => {
  const { poll, queue, underWay } = await open()
  const first = await poll([waiterOf('a|1')])
  assert.deepEqual([first.granted.size, first.refused.size], [0, 0])
  const tag = joinedTag(first, 'a|1')
  // One request more ends than there are places, so there is room for one request, and a waiter of
  // another worker comes first.
  const { granted, joined } = await poll([waiterOf('b|1')], underWay)
  assert.deepEqual([granted.size, [...joined.keys()]], [0, ['b|1']])
  assert.ok((joined.get('b|1') ?? 0) > tag)
  assert.deepEqual(await queue(), ['a|1', 'b|1'])
  assert.equal((await poll([waiterOf('a|1', tag)])).granted.size, 1)
  assert.deepEqual(await queue(), ['b|1'])
})

it('a waiter without a place passes the queue only if there is room for it and for every call of the queue', async () => {
  const { world, poll, underWay } = await open({ concurrency: 2 })
  const passes = async (member: string, ids: string[]) => {
    const { granted, joined } = await poll([waiterOf(member)], ids)
    assert.equal(granted.size, 1)
    await world.cap.release({ ids: [...granted.values()], meanMs: 0 })
    return joined.size === 0
  }
  const { granted } = await poll([waiterOf('a|1')], underWay)
  assert.equal(await passes('a|2', []), true)
  const entry = { id: '1', accountId: 'b', isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
  assert.ok('tag' in (await world.cap.joinWaitQueue(entry, world.now + 60_000)))
  assert.equal(await passes('a|3', []), false)
  assert.equal(await passes('a|4', [...granted.values()]), true)
})

it('a call that a repeated request of the same worker pushes past its deadline is refused in the same step', async () => {
  const { world, poll } = await open({ concurrency: 4, max: 1, seconds: 5 })
  const waiting = { ...waiterOf('a|1'), deadline: world.now + 6_500 }
  const tag = joinedTag(await poll([waiting]), 'a|1')
  const { refused } = await poll([{ ...waiting, tag }, waiterOf('b|repeat', 0)])
  assert.deepEqual([...refused], [['a|1', { reason: 'cap', retryAfterMs: 11_000, hadPlace: true }]])
})

it('a waiter without a place whose permit would come too late is refused in the same step, and never had a place', async () => {
  const { world, poll, queue } = await open({ concurrency: 4, max: 4 })
  const late = { ...waiterOf('a|late'), deadline: world.now + 5_000 }
  const { refused, joined } = await poll([late, waiterOf('a|patient')])
  assert.deepEqual([...refused], [['a|late', { reason: 'cap', retryAfterMs: 10_500, hadPlace: false }]])
  assert.deepEqual([...joined.keys()], ['a|patient'])
  assert.deepEqual(await queue(), ['a|patient'])
})

it('a repeated request keeps its order: it goes before calls that came later, although virtual time began anew', async () => {
  for (const tag of [0.5, 4_000.5]) {
    const { world, poll, underWay } = await open()
    await poll([waiterOf('a|later')])
    assert.ok(joinedTag(await poll([waiterOf('b|repeat', tag)]), 'b|repeat') < 1)
    await poll([waiterOf('c|latest')])
    await world.cap.release({ ids: underWay, meanMs: 0 })
    const order: string[] = []
    for (let permits: string[] = []; order.length < 3; ) {
      const { granted } = await poll(
        [waiterOf('c|latest'), waiterOf('a|later'), waiterOf('b|repeat', tag)].filter(
          ({ member }) => !order.includes(member),
        ),
        permits,
      )
      order.push(...granted.keys())
      permits = [...granted.values()]
    }
    assert.ok(order.indexOf('b|repeat') < order.indexOf('c|latest'), `${order}`)
  }
})

it('a full queue accepts a repeated request whose call it has accepted before', async () => {
  const { world, poll } = await open({ max: 1_000_000 })
  const [queue, fair] = (['queue', 'fair'] as const).map((name) => capKeys.of(world.slug, 'shared', name))
  assert.ok(queue && fair)
  const members = Array.from({ length: QUEUE_LENGTH_MAX }, (_, index) => [1_000 + index, `b|${index}`]).flat()
  await redis.zadd(queue, ...members)
  await redis.hset(fair, 'w:b', QUEUE_LENGTH_MAX, 'f:b', 5_000)
  const { refused, joined } = await poll([waiterOf('a|new'), waiterOf('a|repeat', 0.5)])
  assert.deepEqual([refused.get('a|new')?.reason, [...joined.keys()]], ['overloaded', ['a|repeat']])
})

it('a call that sends a request for others waits in the place of an identical call that is queued before it, and has a place of its own when that call is gone', async () => {
  const { world, poll, queue, underWay } = await open()
  const coalescedKey = upstreamKeys.coalesced(world.slug, 'x')
  const entry = { id: '1', accountId: 'a', isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
  assert.ok('tag' in (await world.cap.joinWaitQueue({ ...entry, coalescedKey }, world.now + 60_000)))
  const between = joinedTag(await poll([waiterOf('c|1')]), 'c|1')
  const leading = { ...waiterOf('b|1'), coalescedKey }
  assert.equal((await poll([leading])).joined.size, 0)
  assert.deepEqual(await queue(), ['a|1', 'c|1'])
  // In that place it comes before the call between them.
  const [permit = assert.fail()] = (await poll([leading, waiterOf('c|1', between)], underWay)).granted
  assert.equal(permit[0], 'b|1')
  await world.cap.leaveWaitQueue({ ...entry, coalescedKey })
  await redis.set(coalescedKey, 'a|gone')
  assert.deepEqual([...(await poll([leading])).joined.keys()], ['b|1'])
  assert.equal(await redis.get(coalescedKey), 'b|1')
})

it('calls that are sent again because the acknowledgement of their places was lost have the same places', async () => {
  const { world, queue } = await open()
  const join = async (id: string, answer?: string) => {
    const coalescedKey = answer && upstreamKeys.coalesced(world.slug, answer)
    const entry = { accountId: 'a', id, isAsync: false, weight: 1, slug: world.slug, bucket: 'shared', coalescedKey }
    const joined = await world.cap.joinWaitQueue(entry, world.now + 60_000)
    assert.ok('tag' in joined, JSON.stringify(joined))
    return joined
  }
  const send = () => Promise.all([join('1'), join('2', 'x'), join('3', 'x')])
  const [first, second, third] = await send()
  assert.deepEqual([first.kind, second.kind, third.kind], ['own', 'own', 'follower'])
  const again = await send()
  assert.deepEqual([again[0].tag, again[1].tag, again[2].kind], [first.tag, second.tag, 'follower'])
  // Also each call alone, with and without an answer that others share.
  assert.deepEqual([(await join('1')).tag, (await join('2', 'x')).tag], [first.tag, second.tag])
  assert.deepEqual(await queue(), ['a|1', 'a|2'])
})
