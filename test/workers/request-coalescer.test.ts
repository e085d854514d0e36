import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { BEGUN } from '../../src/cache/cache-key.ts'
import { RequestCoalescer, type RequestResult, type Subscriber } from '../../workers/cache/request-coalescer.ts'
import { LOCK_LOST } from '../../workers/errors/abort-reasons.ts'
import type { Outcome } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis, url } = await redisOfThisFile()

const keysOf = (name: string) => ({
  answer: `{${name}}:entry`,
  leader: `{${name}}:leader`,
  coalesced: `{${name}}:coalesced`,
})
const subscriber = (id: string, signal = new AbortController().signal): Subscriber => ({
  id,
  deadline: Date.now() + 60_000,
  signal,
  progress: { reach: 'unsent' as const },
})
/** The subscriber's process knows that another process leads. */
const follows = ({ progress }: Subscriber) => until(() => progress.ofRequest?.isUnderWay !== undefined)
/** If the process that leads dies now, its lead ends in time. */
async function assertEnds({ leader }: ReturnType<typeof keysOf>) {
  const lifeMs = await redis.pttl(leader)
  assert.ok(lifeMs > 0 && lifeMs <= 3_000, `the lead of a process that dies now lasts ${lifeMs} ms`)
}
const TIMEOUT = { code: 'UPSTREAM_TIMEOUT' } as const
const OWN: Outcome = { body: Buffer.from('{}') }
/** A call that takes the lead when the answer is stored. */
const findStored = async (_request: object, mayBeStored: boolean) => {
  assert.ok(mayBeStored, 'one request is enough')
  return { outcome: OWN }
}

/** A process whose call leads. It has sent its request and has no answer yet. */
async function lead(t: TestContext, keys: ReturnType<typeof keysOf>) {
  const hanging = Promise.withResolvers<RequestResult>()
  let isLed = false
  const outcome = new RequestCoalescer(redis).join(keys, subscriber('first'), (request) => {
    isLed = true
    request.progress.isUnderWay = true
    return hanging.promise
  })
  const end = () => hanging.resolve({ outcome: TIMEOUT })
  t.after(end)
  await until(() => isLed)
  await assertEnds(keys)
  return { outcome, end }
}

it('a follower in another process knows that the shared request is at the upstream, and sends a request of its own if that request brings no answer that is stored', async (t) => {
  const keys = keysOf('followed')
  const leading = await lead(t, keys)
  const follower = subscriber('second')
  const following = new RequestCoalescer(redis).join(keys, follower, async () => ({ outcome: OWN }))
  await until(() => follower.progress.ofRequest?.isUnderWay === true)
  await assertEnds(keys)
  leading.end()
  assert.deepEqual(await leading.outcome, { outcome: TIMEOUT, isCollapsed: false })
  assert.deepEqual(await following, { outcome: OWN, isCollapsed: false })
  assert.equal(await redis.get(keys.leader), null)
})

it('a request whose caller has left goes on for other calls of its process that wait for its answer', async () => {
  const keys = keysOf('left')
  const leaving = new AbortController()
  const leaver = subscriber('first', leaving.signal)
  const answer = Promise.withResolvers<RequestResult>()
  let ended: AbortSignal | undefined
  const coalescer = new RequestCoalescer(redis)
  const first = coalescer.join(keys, leaver, ({ signal }) => {
    ended = signal
    return answer.promise
  })
  await until(() => ended !== undefined)
  const second = coalescer.join(keys, subscriber('second'), () => assert.fail('one request is enough'))
  leaving.abort(new Error('left'))
  await assert.rejects(first, /left/)
  assert.ok(leaver.progress.sharedRequestEnd, 'its place in the wait queue is free only when the request has ended')
  assert.equal(ended?.aborted, false)
  answer.resolve({ outcome: OWN, freshMs: 1_000 })
  assert.deepEqual(await second, { outcome: OWN, freshMs: 1_000, isCollapsed: true })
})

it('a request whose caller has left ends if no other call of its process waits for its answer, and a process that follows takes its lead', async () => {
  const keys = keysOf('alone')
  const leaving = new AbortController()
  let ended: AbortSignal | undefined
  const first = new RequestCoalescer(redis).join(keys, subscriber('first', leaving.signal), ({ signal }) => {
    ended = signal
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  await until(() => ended !== undefined)
  const follower = subscriber('second')
  const second = new RequestCoalescer(redis).join(keys, follower, async () => ({ outcome: OWN }))
  await follows(follower)
  leaving.abort(new Error('left'))
  await assert.rejects(first, /left/)
  assert.equal(ended?.aborted, true)
  assert.deepEqual(await second, { outcome: OWN, isCollapsed: false })
})

it('a request ends because its call now runs in another worker, although another call was the last to leave it', async () => {
  const keys = keysOf('lost-lock')
  const coalescer = new RequestCoalescer(redis)
  const [losing, leaving] = [new AbortController(), new AbortController()]
  let ended: AbortSignal | undefined
  const first = coalescer.join(keys, subscriber('first', losing.signal), ({ signal }) => {
    ended = signal
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  const second = coalescer.join(keys, subscriber('second', leaving.signal), () => assert.fail('one request is enough'))
  await until(() => ended !== undefined)
  losing.abort(LOCK_LOST)
  await assert.rejects(first, (reason) => reason === LOCK_LOST)
  leaving.abort(new Error('left'))
  await assert.rejects(second, /left/)
  await until(() => ended?.aborted === true)
  assert.equal(ended?.reason, LOCK_LOST)
})

it('a process that loses the lead of a request while it stands still leaves the lead to the process that has it', async (t) => {
  const keys = keysOf('lost')
  const leading = await lead(t, keys)
  await redis.set(keys.leader, 'another', 'PX', 60_000)
  leading.end()
  await leading.outcome
  assert.equal(await redis.get(keys.leader), 'another')
})

it('a call with an earlier place overtakes a request that is not sent yet, in its own process and in another', async () => {
  for (const where of ['here', 'elsewhere']) {
    const keys = keysOf(`ahead-${where}`)
    let waited: AbortSignal | undefined
    const first = new RequestCoalescer(redis)
    const leaving = new AbortController()
    const waiting = first.join(keys, subscriber('late', leaving.signal), ({ signal }) => {
      waited = signal
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    await until(() => waited !== undefined)
    const second = where === 'here' ? first : new RequestCoalescer(redis)
    const answer = Promise.withResolvers<RequestResult>()
    let isLed = false
    const ahead = second.join(keys, { ...subscriber('ahead'), mayOvertake: true }, () => {
      isLed = true
      return answer.promise
    })
    await until(() => isLed)
    await assertEnds(keys)
    // The calls that come now share the first request.
    const remote = subscriber('third')
    const [beside, follower] = [
      second.join(keys, subscriber('third'), () => assert.fail('one request is enough')),
      new RequestCoalescer(redis).join(keys, remote, findStored),
    ]
    await follows(remote)
    await redis.set(keys.answer, 'stored')
    answer.resolve({ outcome: OWN })
    assert.deepEqual(await ahead, { outcome: OWN, isCollapsed: false })
    assert.deepEqual(await beside, { outcome: OWN, isCollapsed: true })
    assert.deepEqual((await follower).outcome, OWN)
    assert.equal(await redis.get(keys.leader), null)
    // The other call keeps its place.
    assert.equal(waited?.aborted, false)
    leaving.abort('left')
    await assert.rejects(waiting, (reason) => reason === 'left')
  }
})

it('a call with an earlier place shares a request that is already sent', async (t) => {
  const keys = keysOf('ahead-sent')
  const leading = await lead(t, keys)
  await until(async () => (await redis.get(keys.leader))?.endsWith(BEGUN) === true)
  const ahead = { ...subscriber('ahead'), mayOvertake: true }
  const following = new RequestCoalescer(redis).join(keys, ahead, findStored)
  await follows(ahead)
  await redis.set(keys.answer, 'stored')
  leading.end()
  assert.deepEqual((await following).outcome, OWN)
})

it('a call that took the lead leads at once although the reply to its command was lost', async (t) => {
  const keys = keysOf('sent-again')
  const { redis: unsteady, proxy } = await connectThroughProxy(t, url, 'blocking')
  const outcome = OWN
  proxy.loseReplies()
  const leading = new RequestCoalescer(unsteady).join(keys, subscriber('first'), async () => ({ outcome }))
  await until(async () => (await redis.exists(keys.leader)) === 1)
  // If it followed, it would follow itself until its lead ends.
  await redis.persist(keys.leader)
  proxy.heal()
  proxy.reset()
  assert.deepEqual(await leading, { outcome, isCollapsed: false })
})

it('a call whose command for the lead was slow finds the answer that the leader before it stored in another Redis', async () => {
  const keys = keysOf('elsewhere')
  const answer = { outcome: { body: Buffer.from('1') }, freshMs: 60_000 }
  let stored: RequestResult | undefined
  let requests = 0
  const send = async (_request: object, mayBeStored: boolean): Promise<RequestResult> => {
    if (mayBeStored && stored) return stored
    requests += 1
    stored = answer
    return answer
  }
  const slow = Object.create(redis)
  slow.evalsha = async (...values: Parameters<typeof redis.evalsha>) => {
    await until(() => stored !== undefined)
    return await redis.evalsha(...values)
  }
  const late = new RequestCoalescer(slow, { isStoreElsewhere: true })
  const second = late.join(keys, subscriber('second'), send)
  const first = new RequestCoalescer(redis, { isStoreElsewhere: true })
  await first.join(keys, subscriber('first'), send)
  assert.deepEqual((await second).outcome, answer.outcome)
  assert.equal(requests, 1)
})

it('a follower in another process reads the stored answer when it takes the lead, if an answer is stored', async () => {
  for (const isStored of [true, false]) {
    const keys = keysOf(`looked-up-${isStored}`)
    await redis.set(keys.leader, 'another', 'PX', 60_000)
    const done: string[] = []
    const follower = subscriber('second')
    const following = new RequestCoalescer(redis).join(keys, follower, async (_request, mayBeStored) => {
      done.push(mayBeStored ? 'looked' : 'sent')
      return { outcome: OWN }
    })
    await follows(follower)
    if (isStored) await redis.set(keys.answer, 'stored by the other')
    assert.deepEqual(done, [])
    await redis.del(keys.leader)
    await following
    assert.deepEqual(done, [isStored ? 'looked' : 'sent'])
  }
})

it('requests that take their leads in the same command lead, follow and overtake independently', async () => {
  const free = Array.from({ length: 20 }, (_, index) => keysOf(`together-${index}`))
  const [sent, unsent] = [keysOf('together-sent'), keysOf('together-unsent')]
  await redis.mset(sent.leader, 'another sent', unsent.leader, 'another')
  const coalescer = new RequestCoalescer(redis)
  const send = async () => ({ outcome: OWN })
  const leading = free.map((keys) => coalescer.join(keys, subscriber('first'), send))
  const overtaking = coalescer.join(unsent, { ...subscriber('ahead'), mayOvertake: true }, send)
  const leaving = new AbortController()
  const following = { ...subscriber('late', leaving.signal), mayOvertake: true }
  const followed = coalescer.join(sent, following, () => assert.fail('one request is enough'))
  for (const led of [...leading, overtaking]) assert.deepEqual(await led, { outcome: OWN, isCollapsed: false })
  assert.equal(following.progress.ofRequest?.isUnderWay, true)
  leaving.abort('left')
  await assert.rejects(followed, (reason) => reason === 'left')
})
