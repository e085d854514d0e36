import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { RequestCoalescer, type Subscriber } from '../../workers/cache/request-coalescer.ts'
import { until } from '../support/gateway.ts'
import { startOwnRedis } from '../support/services.ts'

it('a follower in another process knows that the request it shares is at the upstream', async (t) => {
  const server = await startOwnRedis()
  const redis = openRedis([server.url], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(async () => {
    await closeRedis(redis)
    await server.stop()
  })
  const keys = { entry: '{x}:entry', leader: '{x}:leader', outcome: '{x}:outcome', coalesced: '{x}:coalesced' }
  const subscriber = (member: string): Subscriber => ({
    member,
    deadline: Date.now() + 60_000,
    signal: new AbortController().signal,
    progress: {},
  })
  const hanging = Promise.withResolvers<{ code: 'UPSTREAM_TIMEOUT' }>()
  let isLed = false
  const leading = new RequestCoalescer(redis).join(keys, subscriber('first'), (request) => {
    isLed = true
    request.progress.isUnderWay = true
    return hanging.promise
  })
  await until(() => isLed)
  const follower = subscriber('second')
  const following = new RequestCoalescer(redis).join(keys, follower, () => assert.fail('one request is enough'))
  await until(() => follower.progress.shared?.isUnderWay === true)
  hanging.resolve({ code: 'UPSTREAM_TIMEOUT' })
  assert.deepEqual(await leading, { outcome: { code: 'UPSTREAM_TIMEOUT' }, isCollapsed: false })
  assert.deepEqual(await following, { outcome: { code: 'UPSTREAM_TIMEOUT' }, isCollapsed: true })
})
