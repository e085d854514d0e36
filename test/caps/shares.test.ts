import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { QueueAdmission } from '../../src/caps/replies.ts'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import { capKeys, keys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

const { redis } = await redisOfThisFile()

const open = (rules: Caps) => new World(redis, rules).open()
const call = (
  account: string,
  more: { group?: string; isAsync?: boolean; timeoutMs?: number; answer?: string } = {},
) => ({
  account,
  weight: 1,
  isAsync: false,
  timeoutMs: 30 * SECOND,
  ...more,
})

/**
 * Whether a call has a place of its own ahead of an identical call, or follows it, and the wait
 * that it is quoted.
 */
async function assertJoins(
  world: World,
  given: ReturnType<typeof call>,
  expected: Pick<QueueAdmission, 'kind' | 'etaMs'>,
): Promise<void> {
  assert.equal(await world.join(given), undefined)
  const { kind, etaMs } = world.lastPlace ?? assert.fail()
  assert.deepEqual({ kind, etaMs }, expected)
}

it('no accepted call misses its deadline when one account has six loops beside seven that come and go', async () => {
  const world = await open({ concurrency: 8, rates: [{ max: 10, seconds: 60 }] })
  const grantedTo = (account: string) => world.grantsOf(account)
  // Each loop calls again when its call has ended, or when its Retry-After is over.
  const loops = [
    ...Array.from({ length: 6 }, () => ({ account: 'busy', isHere: () => true, againAt: 0 })),
    ...Array.from({ length: 7 }, (_, index) => ({
      account: `guest-${index}`,
      isHere: (second: number) => (second + 17 * index) % 47 < 25,
      againAt: 0,
    })),
  ].map((loop) => ({ ...loop, member: '' }))
  for (let second = 0; second < 240; second += 1) {
    for (const loop of loops) {
      if (!loop.isHere(second) || world.isWaiting(loop.member) || world.now < loop.againAt) continue
      const result = await world.join(call(loop.account))
      loop.member = world.lastMember
      if (result) loop.againAt = world.now + Math.min(result.retryAfterMs, 5 * SECOND)
    }
    // The world fails if an accepted call passes its deadline without a refusal.
    await world.advance(SECOND)
  }
  const guests = Array.from({ length: 7 }, (_, index) => grantedTo(`guest-${index}`))
  assert.ok(world.granted >= 40, `${world.granted} of 50 slots were used`)
  assert.ok(grantedTo('busy') <= 25, `the busy account had ${grantedTo('busy')}`)
  assert.ok(Math.min(...guests) >= 1, `guests had ${guests}`)
})

it('no slot goes to a call that has no time left for its answer, although others push calls back', async () => {
  // In this history such a call used to get a single slot of 50.
  let state = 7_919
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  const world = await open({ concurrency: 4, rates: [{ max: 10, seconds: 60 }] })
  // With this cap slots come one after the other, and not all at once.
  for (let early = 0; early < 10; early += 1) {
    await world.join(call(`early-${early % 3}`))
    await world.advance(4 * SECOND + random() * 4 * SECOND)
  }
  const loops = Array.from({ length: 13 }, (_, index) => {
    const isBusy = index < 6
    return { account: isBusy ? 'busy' : `guest-${index}`, pauseMs: isBusy ? 0 : 30 * SECOND, againAt: 0, member: '' }
  })
  for (let elapsedMs = 0; elapsedMs < 240 * SECOND; elapsedMs += 173) {
    for (const loop of loops) {
      if (world.isWaiting(loop.member)) continue
      if (loop.member !== '') loop.againAt = world.now + random() * loop.pauseMs
      loop.member = ''
      if (world.now < loop.againAt) continue
      const refusal = await world.join(call(loop.account))
      if (!refusal) loop.member = world.lastMember
      else loop.againAt = world.now + Math.min(refusal.retryAfterMs, 5 * SECOND) + random() * loop.pauseMs
    }
    await world.advance(173)
  }
  assert.deepEqual([world.granted, world.grantedLate], [50, 0])
})

it('a saturated cap serves accounts by the weights of their plans', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 5_000, seconds: 60 }] })
  const weights = { free: 1, pro: 2, elite: 4 }
  await world.applyUpstreamLimit({ closedForMs: 2 * SECOND })
  for (let index = 0; index < 60; index += 1) {
    for (const [account, weight] of Object.entries(weights)) {
      assert.equal(await world.join({ ...call(account, { timeoutMs: 120 * SECOND }), weight }), undefined)
    }
  }
  await world.advance(10 * SECOND)
  const first = world.grantedTo.slice(0, 70)
  const counts = Object.keys(weights).map((account) => first.filter((share) => share === account).length)
  assert.deepEqual(counts, [10, 20, 40])
})

it('a call does not wait for the spent share of another call that is queued for the same answer', async () => {
  const world = await open({ concurrency: 10, rates: [{ max: 10, seconds: 60 }] })
  await world.join(call('b'))
  for (let index = 0; index < 5; index += 1) await world.join(call('a'))
  await world.advance(0)
  assert.equal(await world.join(call('a', { isAsync: true, timeoutMs: 120 * SECOND, answer: 'x' })), undefined)
  const patientMs = world.lastPlace?.etaMs ?? 0
  assert.ok(patientMs > 50 * SECOND, `${patientMs}`)
  await assertJoins(world, call('a', { isAsync: true, timeoutMs: 120 * SECOND, answer: 'x' }), {
    kind: 'follower',
    etaMs: patientMs,
  })
  await assertJoins(world, call('b', { answer: 'x' }), { kind: 'ahead', etaMs: 0 })
  // The next call shares with it.
  await assertJoins(world, call('c', { answer: 'x' }), { kind: 'follower', etaMs: 0 })
  await world.advance(0)
  assert.deepEqual(
    ['a', 'b', 'c'].map((account) => world.grantsOf(account)),
    [5, 2, 0],
  )
})

it('the refusal of a call that would share an answer too late for it says what that answer waits for', async () => {
  for (const account of ['a', 'c']) {
    const world = await open({ concurrency: 10, rates: [{ max: 10, seconds: 60 }] })
    for (const asker of ['b', 'b', 'b', 'b', 'b', 'a', 'a', 'a', 'a', 'a']) await world.join(call(asker))
    await world.advance(10 * SECOND)
    for (const asker of ['b', 'a'])
      await world.join(call(asker, { isAsync: true, timeoutMs: 120 * SECOND, answer: asker }))
    const slotMs = 50 * SECOND + WINDOW_MARGIN_MS
    const refusal = await world.join(call(account, { isAsync: true, timeoutMs: 20 * SECOND, answer: 'a' }))
    assert.deepEqual(refusal, { reason: 'cap', retryAfterMs: slotMs }, account)
  }
  const world = await open({ concurrency: 10, rates: [{ max: 10, seconds: 60 }] })
  await world.join(call('b'))
  for (let index = 0; index < 5; index += 1) await world.join(call('a'))
  await world.advance(50 * SECOND)
  await world.join(call('b'))
  await world.join(call('a', { isAsync: true, timeoutMs: 120 * SECOND, answer: 'x' }))
  const refusal = await world.join(call('a', { isAsync: true, timeoutMs: 5 * SECOND, answer: 'x' }))
  assert.deepEqual(refusal, { reason: 'share', retryAfterMs: 10 * SECOND + WINDOW_MARGIN_MS })
})

it('a call does not wait in the place of an asynchronous call for the same answer if its own place comes first', async () => {
  const world = await open({ concurrency: 1, rates: [{ max: 1, seconds: 5 }] })
  await world.join(call('a'))
  await world.advance(0)
  for (let index = 0; index < 8; index += 1)
    await world.join(call('a', { isAsync: true, timeoutMs: 120 * SECOND, answer: `${index}` }))
  // The next slot belongs to an asynchronous call.
  const slotMs = 2 * (5 * SECOND + WINDOW_MARGIN_MS)
  const refusal = await world.join(call('b', { timeoutMs: 3 * SECOND, answer: '7' }))
  assert.deepEqual(refusal, { reason: 'cap', retryAfterMs: slotMs })
  await assertJoins(world, call('b', { answer: '7' }), { kind: 'ahead', etaMs: slotMs })
  await assertJoins(world, call('c', { answer: '7' }), { kind: 'follower', etaMs: slotMs })
})

it('a call does not wait in the place of another call for the same answer in a queue too long to plan for each call', async () => {
  const world = await open({ concurrency: 200, rates: [{ max: 110, seconds: 20 }] })
  for (let index = 0; index < 110; index += 1) await world.join(call('a'))
  await world.advance(0)
  for (let index = 0; index < 220; index += 1)
    await world.join(call('a', { isAsync: true, timeoutMs: 120 * SECOND, answer: `${index}` }))
  const windowMs = 20 * SECOND + WINDOW_MARGIN_MS
  await assertJoins(world, call('b', { answer: '219' }), { kind: 'ahead', etaMs: windowMs })
  await assertJoins(world, call('b', { answer: '0' }), { kind: 'follower', etaMs: windowMs })
})

it('a call that a newcomer pushes past its deadline is refused at once', async () => {
  const world = await open({ concurrency: 200, rates: [{ max: 110, seconds: 20 }] })
  for (let index = 0; index < 110; index += 1) await world.join(call('busy'))
  await world.advance(SECOND)
  for (let index = 0; index < 110; index += 1) assert.equal(await world.join(call('busy')), undefined)
  assert.equal((await world.join(call('busy')))?.reason, 'cap')
  assert.equal(await world.join(call('guest')), undefined)
  await world.advance(0)
  assert.equal(world.evicted, 1)
  await world.advance(30 * SECOND)
  assert.equal(world.grantsOf('guest'), 1)
  assert.equal(world.granted, 220)
})

it('calls of accounts that had as little are granted in the order in which they came', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 1, seconds: 5 }] })
  await world.join(call('first'))
  await world.advance(0)
  const accounts = ['c', 'b', 'a']
  for (const account of accounts) assert.equal(await world.join(call(account)), undefined)
  await world.advance(0)
  const grants = []
  for (const _ of accounts) {
    await world.advance(5 * SECOND + WINDOW_MARGIN_MS)
    grants.push(accounts.map((account) => world.grantsOf(account)).join(' '))
  }
  assert.deepEqual(grants, ['1 0 0', '1 1 0', '1 1 1'])
})

it('a call whose slot a repeated request takes is refused at once', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 1, seconds: 5 }] })
  await world.join(call('a'))
  await world.advance(0)
  assert.equal(await world.join(call('a', { timeoutMs: 6.5 * SECOND })), undefined)
  await world.advance(5_499)
  world.now += 1
  assert.ok(await world.acquireUnqueued('b'))
  await world.advance(0)
  assert.equal(world.evicted, 1)
  assert.equal(world.lastEviction, 'cap')
})

it('the refusal of a call that loses the rest of its share to a repeated request of its account says so', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 2, seconds: 5 }] })
  await world.join(call('a'))
  await world.advance(4 * SECOND)
  await world.join(call('b'))
  await world.advance(0)
  assert.equal(await world.join(call('a', { timeoutMs: 2.5 * SECOND })), undefined)
  await world.advance(1.5 * SECOND - 1)
  world.now += 1
  assert.ok(await world.acquireUnqueued('a'))
  await world.advance(0)
  assert.equal(world.evicted, 1)
  assert.equal(world.lastEviction, 'share')
})

it('a call whose slot a repeated request takes before its worker asks for it is refused at once', async () => {
  const world = await open({ concurrency: 200, rates: [{ max: 110, seconds: 60 }] })
  for (let index = 0; index < 109; index += 1) await world.join(call('busy'))
  await world.advance(SECOND)
  assert.equal(await world.join(call('a')), undefined)
  assert.equal(world.lastPlace?.etaMs, 0)
  assert.ok(await world.acquireUnqueued('b'))
  await world.advance(0)
  assert.equal(world.evicted, 1)
})

it('calls that a close of the upstream leaves no time for are refused at once', async () => {
  const world = await open({ concurrency: 200, rates: [{ max: 110, seconds: 20 }] })
  for (let index = 0; index < 110; index += 1) await world.join(call('a'))
  await world.advance(SECOND)
  for (let index = 0; index < 220; index += 1) {
    assert.equal(await world.join(call('a', { timeoutMs: 42.5 * SECOND })), undefined)
  }
  await world.applyUpstreamLimit({ closedForMs: 25 * SECOND })
  await world.advance(0)
  assert.equal(world.evicted, 110)
  await world.advance(43 * SECOND)
  assert.equal(world.granted, 220)
})

it("a permit that was given back is another call's at once", async () => {
  const world = await open({ concurrency: 1, rates: [{ max: 1, seconds: 5 }] })
  await world.join(call('a'))
  await world.join(call('b'))
  await world.advance(0)
  const [permit] = world.leases
  await world.releaseUnused(permit ?? assert.fail())
  await world.advance(0)
  assert.equal(world.leases.length, 1)
  assert.equal(world.waiting.length, 0)
})

it('a spent share is refused as such, until the others count as quiet and no longer', async () => {
  const world = await open({ concurrency: 8, rates: [{ max: 60, seconds: 3_600 }] })
  assert.equal(await world.join(call('other')), undefined)
  for (let index = 0; index < 30; index += 1) {
    assert.equal(await world.join(call('mine')), undefined)
    await world.advance(100)
  }
  const refusal = await world.join(call('mine'))
  assert.equal(refusal?.reason, 'share')
  const retryAfterMs = refusal?.retryAfterMs ?? assert.fail()
  assert.ok(retryAfterMs > 290 * SECOND && retryAfterMs <= 300 * SECOND, `${retryAfterMs}`)
  await world.advance(retryAfterMs - 1)
  assert.equal((await world.join(call('mine')))?.reason, 'share')
  await world.advance(2)
  assert.equal(await world.join(call('mine')), undefined)
})

it('an account with hundreds of calls in the queue has as many there as its half of the rate serves in time', async () => {
  const world = await open({ concurrency: 40, rates: [{ max: 20, seconds: 1 }] })
  const [windowMs, timeoutMs] = [SECOND + WINDOW_MARGIN_MS, 45 * SECOND]
  assert.equal(await world.join(call('guest')), undefined)
  let refusal: Awaited<ReturnType<World['join']>>
  for (let taken = 0; !refusal && taken <= 400; taken += 1) refusal = await world.join(call('busy', { timeoutMs }))
  // The halves of thirty windows. The guest's call and their calls fill fifteen windows and a place
  // of the next window.
  assert.equal(world.waiting.length, 1 + 300)
  assert.deepEqual(refusal, { reason: 'share', retryAfterMs: 15 * windowMs })
  assert.equal(await world.join(call('guest')), undefined)
})

it('accounts of one group count as a single account, and a fifth of a long window stays for newcomers', async () => {
  const world = await open({ concurrency: 8, rates: [{ max: 60, seconds: 3_600 }] })
  const takeAll = async (account: string, group?: string): Promise<string | undefined> => {
    for (let index = 0; index < 61; index += 1) {
      const refusal = await world.join(call(account, group === undefined ? {} : { group }))
      await world.advance(100)
      if (refusal) return refusal.reason
    }
    return undefined
  }
  assert.equal(await world.join(call('honest')), undefined)
  for (let index = 0; index < 10; index += 1) await takeAll(`new-${index}`, 'network')
  assert.equal(world.grantsOf('group:network'), 30)
  assert.equal(await takeAll('second'), 'share')
  assert.equal(world.granted, 48)
  // Twelve accounts that have had nothing of the hour are served at once, each once.
  for (let index = 0; index < 12; index += 1) {
    assert.equal(await world.join(call(`newcomer-${index}`)), undefined)
    await world.advance(100)
  }
  assert.equal(world.granted, 60)
  assert.equal((await world.join(call('late')))?.reason, 'cap')
})

/**
 * Calls that come one after the other, each of an account of its own.
 *
 * @returns how many got a permit
 */
async function comeFrom(world: World, groups: (string | undefined)[]): Promise<number> {
  const before = world.granted
  for (const [index, group] of groups.entries()) {
    await world.join(call(`account-${world.operations}-${index}`, group === undefined ? {} : { group }))
    await world.advance(100)
  }
  return world.granted - before
}

const HOURLY = { concurrency: 8, rates: [{ max: 60, seconds: 3_600 }] }

/** Sixty networks of one /48, each with an account of its own. */
const OF_ONE_48 = Array.from({ length: 60 }, (_, index) => `h1/q1/h${index}/h0`)

it('sixty networks of one /48 leave a fifth of an hourly cap to others although they come first, and a quarter is theirs while others ask', async () => {
  const alone = await open(HOURLY)
  // They have what a wide network may hold, less the part that it keeps for other networks in it.
  assert.equal(await comeFrom(alone, OF_ONE_48), 39)
  assert.equal(await comeFrom(alone, ['h2/h0', 'h3/h0', 'h4/q1/h0/h0', undefined, undefined]), 5)
  const beside = await open(HOURLY)
  assert.equal(await comeFrom(beside, ['h2/h0']), 1)
  assert.equal(await comeFrom(beside, OF_ONE_48), 15)
  assert.equal(await comeFrom(beside, ['h2/h1', 'h3/h0', 'h4/q1/h0/h0', 'h1/q2/h0/h0', undefined]), 5)
})

it('one network with sixty accounts leaves room for a network beside it and for others, sixty networks of a wider one for others', async () => {
  const one = await open(HOURLY)
  assert.equal(
    await comeFrom(
      one,
      Array.from({ length: 60 }, () => 'h1/h0'),
    ),
    39,
  )
  assert.equal(await comeFrom(one, ['h1/beside', 'h2/h0', 'h3/q1/h0/h0']), 3)
  const many = await open(HOURLY)
  assert.equal(
    await comeFrom(
      many,
      Array.from({ length: 60 }, (_, index) => `h1/h${index}`),
    ),
    48,
  )
  assert.equal(await comeFrom(many, ['h2/h0', 'h3/q1/h0/h0', undefined]), 3)
})

it('what a long window keeps goes to networks that have had none, and no wider network has more than half of it', async () => {
  const world = await open(HOURLY)
  for (let index = 0; index < 60; index += 1) await comeFrom(world, [`h${index % 4}/h0`])
  assert.equal(world.granted, 48)
  assert.equal(await comeFrom(world, ['h7/h0', 'h7/h0']), 1)
  // Of twelve slots, six go to one wide network and three to a /48 of another wide network, and
  // each network gets a single slot.
  assert.equal(
    await comeFrom(
      world,
      Array.from({ length: 9 }, (_, index) => `h8/h${index}`),
    ),
    6,
  )
  assert.equal(
    await comeFrom(
      world,
      Array.from({ length: 9 }, (_, index) => `h9/q1/h${index}/h0`),
    ),
    3,
  )
  assert.equal(await comeFrom(world, ['h8/h0', 'h9/q1/h0/h0', 'h0/h0']), 0)
})

it('calls of another network do not wait behind the calls of sixty networks of one /48', async () => {
  // A window with a single request has no half, so only the order is fair.
  const world = await open({ concurrency: 1, rates: [{ max: 1, seconds: 5 }] })
  for (const group of OF_ONE_48.slice(0, 30)) await world.join(call('attacker', { group, timeoutMs: 300 * SECOND }))
  await world.advance(0)
  const windowMs = 5 * SECOND + WINDOW_MARGIN_MS
  for (const other of ['h2/h0', 'h3/q1/h0/h0']) {
    assert.equal(await world.join(call('other', { group: other })), undefined)
    await world.advance(2 * windowMs)
    assert.equal(world.grantsOf(`group:${other}`), 1)
  }
})

it('a network whose calls leave the queue does not delay other networks of its /48', async () => {
  const world = await open({ concurrency: 1, rates: [{ max: 1, seconds: 5 }] })
  const comesAndLeaves = async (group: string): Promise<void> => {
    await world.join(call('attacker', { group, timeoutMs: 300 * SECOND }))
    await world.leave(world.waiting.find(({ member }) => member === world.lastMember) ?? assert.fail())
  }
  for (let index = 0; index < 3; index += 1) await world.join(call('other', { timeoutMs: 300 * SECOND }))
  for (let index = 0; index < 50; index += 1) await comesAndLeaves('h1/q1/h1/h0')
  await world.join(call('neighbour', { group: 'h1/q1/h2/h0' }))
  await world.advance(10 * SECOND + 2 * WINDOW_MARGIN_MS)
  assert.equal(world.grantsOf('group:h1/q1/h2/h0'), 1)
})

it('an account that calls alone may use all of a long window', async () => {
  const world = await open({ concurrency: 8, rates: [{ max: 60, seconds: 3_600 }] })
  for (let index = 0; index < 60; index += 1) {
    assert.equal(await world.join(call('only')), undefined)
    await world.advance(100)
  }
  assert.equal(world.granted, 60)
  assert.equal((await world.join(call('only')))?.reason, 'cap')
})

it('asynchronous calls of many accounts leave every other slot to calls whose callers wait', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 1, seconds: 5 }] })
  for (let index = 0; index < 50; index += 1) {
    await world.join(call(`account-${index % 10}`, { isAsync: true, timeoutMs: 600 * SECOND }))
  }
  await world.advance(SECOND)
  for (let time = 0; time < 5; time += 1) {
    const before = world.grantsOf('honest')
    assert.equal(await world.join(call('honest')), undefined)
    await world.advance(11.5 * SECOND)
    assert.equal(world.grantsOf('honest'), before + 1)
  }
})

it('after a close one request goes first, and the others follow its response', async () => {
  const world = await open({ concurrency: 64, rates: [{ max: 5_000, seconds: 60 }] })
  await world.join(call('first'))
  await world.advance(0)
  await world.applyUpstreamLimit({ closedForMs: 5 * SECOND })
  for (let index = 0; index < 64; index += 1) await world.join(call(`account-${index % 8}`))
  await world.advance(5 * SECOND)
  assert.equal(world.leases.length, 1)
  // It is refused as well, because a single request is sent when the upstream opens again.
  await world.applyUpstreamLimit({ closedForMs: 5 * SECOND })
  await world.advance(5 * SECOND + 1)
  assert.equal(world.leases.length, 1)
  await world.advance(50)
  assert.equal(world.leases.length, 2)
  await world.advance(50)
  assert.equal(world.leases.length, 4)
  await world.advance(MINUTE / 2)
  assert.equal(world.granted, 65)
})

it('a release that is sent again because its reply was lost lets no other request go and teaches nothing', async () => {
  const { cap, slug } = await open({ concurrency: 64, rates: [{ max: 5_000, seconds: 60 }] })
  const waiters = ['a', 'b', 'c', 'd', 'e'].map((id) => waiterOf(`account|${id}`, 0))
  const acquire = async (released: { ids: string[]; meanMs: number }) => [
    ...(await cap.acquire({ waiters, released, leaseMs: 60_000 })).granted.values(),
  ]
  await cap.beginGradually()
  const ids = await acquire({ ids: [], meanMs: 0 })
  assert.equal(ids.length, 1)
  const learned = () => redis.hmget(capKeys.of(slug, 'shared', 'state'), 'ramp', 'serviceMs')
  await cap.release({ ids, meanMs: 10 })
  assert.deepEqual(await learned(), ['2', '10.0'])
  await cap.release({ ids, meanMs: 400 })
  assert.deepEqual(await learned(), ['2', '10.0'])
  // If a poll granted nothing, Redis does not remember it, and it may run again.
  assert.equal((await acquire({ ids, meanMs: 400 })).length, 2)
  assert.deepEqual(await learned(), ['2', '10.0'])
})

it('calls wait while workers stall for a second, and are refused if workers stall for longer', async () => {
  const world = await open({ concurrency: 64, rates: [{ max: 100_000, seconds: 60 }] })
  const come = async (ms: number, isServed: boolean): Promise<string[]> => {
    const refusals: string[] = []
    for (const endsAt = world.now + ms; world.now < endsAt; ) {
      const refusal = await world.join(call('account'))
      if (refusal) refusals.push(refusal.reason)
      if (isServed) await world.advance(25)
      else world.now += 25
    }
    return refusals
  }
  assert.deepEqual(await come(4 * SECOND, true), [])
  assert.deepEqual(await come(1.5 * SECOND, false), [])
  const refusals = new Set(await come(3 * SECOND, false))
  assert.deepEqual([...refusals], ['overloaded'])
})

it('a lease lasts for as long as it is renewed, and then its place is free', async () => {
  const world = await open({ concurrency: 1, rates: [{ max: 500, seconds: 10 }] })
  const acquire = async (member: string) => {
    const waiters = [waiterOf(member, 0)]
    return (await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })).granted.get(member)
  }
  const first = (await acquire('a|1')) ?? assert.fail()
  world.now += 5 * SECOND
  assert.equal(await world.cap.renew([first, 'a|gone|9'], 6_000), 1)
  world.now += 5 * SECOND
  assert.equal(await acquire('a|2'), undefined)
  world.now += SECOND + 1
  assert.ok(await acquire('a|2'))
})

it('a call whose worker is gone leaves the queue at its deadline', async () => {
  const world = await open({ concurrency: 1, rates: [{ max: 500, seconds: 10 }] })
  const entry = { accountId: 'a', id: 'call-1', group: undefined, isAsync: false, weight: 1 }
  const place = await world.cap.joinWaitQueue({ ...entry, slug: 'any', bucket: 'shared' }, world.now + SECOND)
  assert.ok(!('reason' in place))
  world.now += SECOND - 1
  assert.equal((await world.cap.read()).ahead, 1)
  world.now += 1
  assert.equal((await world.cap.read()).ahead, 0)
})

it('a cap whose past Redis has lost stays closed for its window', async () => {
  const world = await open({ concurrency: 4, rates: [{ max: 20, seconds: 10 }] })
  await redis.set(keys.rememberedSince, world.now - SECOND)
  assert.deepEqual(await world.join(call('a', { timeoutMs: 5 * SECOND })), { reason: 'cap', retryAfterMs: 9_500 })
  await world.advance(9_500)
  assert.equal(await world.join(call('a', { timeoutMs: 5 * SECOND })), undefined)
})

it('calls without a ticket pass while there is room, and when it is used up queue in fair order or are refused exactly', async () => {
  const world = await open({ concurrency: 8, rates: [{ max: 120, seconds: 20 }] })
  const startedAt = world.now
  for (let round = 0; round < 15; round += 1) {
    await world.joinIfNeeded(Array.from({ length: 8 }, () => call('busy')))
    await world.advance(100)
  }
  assert.equal(world.passed, 120)
  const opensInMs = startedAt + 20 * SECOND + WINDOW_MARGIN_MS - world.now
  const [refusal] = await world.joinIfNeeded([call('late', { timeoutMs: 3 * SECOND })])
  assert.deepEqual(refusal, { reason: 'cap', retryAfterMs: opensInMs })
  await world.joinIfNeeded(Array.from({ length: 8 }, () => call('busy')))
  await world.joinIfNeeded([call('guest')])
  assert.equal(world.waiting.length, 9)
  await world.advance(opensInMs)
  const next = world.grantedTo.slice(120)
  assert.ok(next.indexOf('guest') >= 0 && next.indexOf('guest') <= 1, `granted to ${next}`)
})
