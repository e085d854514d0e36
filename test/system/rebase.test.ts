import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { capKeys } from '../../src/redis/keys.ts'
import { isCapQuiet, openOperatorRedis } from '../support/cap-state.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const FAIR = capKeys.of('random-facts', 'shared', 'fair')
const QUEUE = 'agw:{random-facts}:random-facts'

describe('fair tags of a wait queue that is never empty', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let accounts: Account[]

  before(async () => {
    upstream = await startUpstreamServer()
    upstream.play('random-facts', () => ({ id: 'a', text: 't', source: 's', source_url: 'u' }))
    // Without a worker, so that calls stay in the queue until the test is done with it.
    gateway = await startGateway({ workers: 0, environment: upstream.environment('random-facts') })
    accounts = await Promise.all(Array.from({ length: 3 }, () => signUp(gateway)))
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  it('fair tags of a wait queue that is never empty are counted anew before priorities run out, and every call keeps its place', async (t) => {
    const redis = openOperatorRedis(gateway)
    t.after(() => redis.disconnect())
    const ids: string[] = []
    const call = async (who: number): Promise<void> => {
      const { key, path } = { key: accounts[who]?.live ?? '', path: `/v1/call/random-facts/random?who=${who}` }
      const answer = await send(gateway, path, { key, headers: { prefer: 'respond-async' } })
      assert.equal(answer.status, 202, answer.text)
      ids.push(String(answer.headers.get('x-call-id')))
    }
    const priorities = async (): Promise<number[]> =>
      await Promise.all(ids.map(async (id) => Number(await redis.hget(`${QUEUE}:${id}`, 'priority'))))
    for (const who of [0, 0, 1]) await call(who)
    assert.deepEqual(await priorities(), [1, 9, 1])
    // As after a hundred thousand calls with never an empty line.
    await redis.hset(FAIR, 'now', '1200000')
    await call(2)
    assert.equal(await redis.hget(FAIR, 'base'), '1200000')
    // Those from before are overdue: they come first, in their order; the new one is no later than what comes now.
    assert.deepEqual(await priorities(), [1, 1, 1, 1])
    await call(2)
    assert.deepEqual(await priorities(), [1, 1, 1, 1, 9])
    await gateway.startWorker()
    for (const [index, id] of ids.entries()) {
      const look = () => send(gateway, `/v1/calls/${id}`, { key: accounts[[0, 0, 1, 2, 2][index] ?? 0]?.live ?? '' })
      await until(async () => (await look()).status === 200)
    }
    await until(async () => await isCapQuiet(redis, 'random-facts'))
  })
})
