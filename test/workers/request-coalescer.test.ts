import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { RequestCoalescer, type Subscriber } from '../../workers/cache/request-coalescer.ts'
import { until } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

const keysOf = (name: string) => ({
  entry: `{${name}}:entry`,
  leader: `{${name}}:leader`,
  outcome: `{${name}}:outcome`,
  coalesced: `{${name}}:coalesced`,
})
const subscriber = (member: string): Subscriber => ({
  member,
  deadline: Date.now() + 60_000,
  signal: new AbortController().signal,
  progress: {},
})
const TIMEOUT = { code: 'UPSTREAM_TIMEOUT' } as const

/** A process whose call leads: its request has been sent and has no answer yet. */
async function lead(t: TestContext, keys: ReturnType<typeof keysOf>) {
  const hanging = Promise.withResolvers<typeof TIMEOUT>()
  let isLed = false
  const outcome = new RequestCoalescer(redis).join(keys, subscriber('first'), (request) => {
    isLed = true
    request.progress.isUnderWay = true
    return hanging.promise
  })
  const end = () => hanging.resolve(TIMEOUT)
  t.after(end)
  await until(() => isLed)
  return { outcome, end }
}

it('a follower in another process knows that the request it shares is at the upstream, and the lead ends with the request', async (t) => {
  const keys = keysOf('followed')
  const leading = await lead(t, keys)
  const follower = subscriber('second')
  const following = new RequestCoalescer(redis).join(keys, follower, () => assert.fail('one request is enough'))
  await until(() => follower.progress.shared?.isUnderWay === true)
  const lifeMs = await redis.pttl(keys.leader)
  assert.ok(lifeMs > 0 && lifeMs <= 3_000, `the lead of a process that dies now lasts ${lifeMs} ms`)
  leading.end()
  assert.deepEqual(await leading.outcome, { outcome: TIMEOUT, isCollapsed: false })
  assert.deepEqual(await following, { outcome: TIMEOUT, isCollapsed: true })
  assert.equal(await redis.get(keys.leader), null)
})

it('a process that lost the lead of a request while it stood still leaves it to the one that has it', async (t) => {
  const keys = keysOf('lost')
  const leading = await lead(t, keys)
  await redis.set(keys.leader, 'another', 'PX', 60_000)
  leading.end()
  await leading.outcome
  assert.equal(await redis.get(keys.leader), 'another')
})
