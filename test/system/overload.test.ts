import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { accountKeys, capKeys } from '../../src/redis/keys.ts'
import { isCapQuiet, openOperatorRedis } from '../support/cap-state.ts'
import { type Account, type Answer, send } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'

describe('an upstream with more calls than it can take', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      workers: 2,
      caps: { 'random-facts': 'concurrency=4,100000/1', 'dog-images': 'concurrency=4,100000/1' },
      timeoutMs: 20_000,
    })
    ;({ gateway, upstream, account } = stage)
  })
  after(() => stage.stop())

  it('if an upstream gets more calls than it can serve, calls that would wait too long are refused at no cost, and every accepted call is served', async () => {
    upstream.play('random-facts', async () => {
      await new Promise((resolve) => setTimeout(resolve, 200))
      return recorded('random-facts')
    })
    // Each call has a number, in an undeclared parameter that the gateway forwards.
    const call = (number: number): Promise<Answer> => send(gateway, `${FACT}?number=${number}`, { key: account.live })
    // The node learns how long a request takes.
    for (let number = 0; number < 4; number += 1) assert.equal((await call(number)).status, 200)
    // The upstream can serve twenty a second, and the gateway accepts a wait of five seconds. A
    // thousand calls at once are ten times too many.
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, index) => call(4 + index)))
    const served = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status !== 200)
    console.log({ served: served.length, refused: refused.length })
    for (const { status, text, headers } of refused) {
      assert.equal(status, 503)
      assert.ok(text.includes('OVERLOADED'), text)
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    // A worker that stands still may lose a call to another worker, so a request may come twice.
    const sent = new Set(upstream.arrivalsOf('random-facts').map(({ url }) => Number(/number=(\d+)/.exec(url)?.[1])))
    for (const [index, { status }] of answers.entries())
      assert.equal(sent.has(4 + index), status === 200, `call ${index}`)
    // The calls that a wait of five seconds holds, and no more than the error of the estimate
    // besides.
    const redis = openOperatorRedis(gateway)
    const serviceMs = Number(await redis.hget(capKeys.of('random-facts', 'shared', 'state'), 'serviceMs'))
    assert.ok(serviceMs >= 200, `${serviceMs} ms`)
    const least = (0.6 * 4 * 5_000) / serviceMs
    assert.ok(served.length >= least && served.length <= 250, `${served.length} served, at least ${least}`)
    await until(async () => await isCapQuiet(redis, 'random-facts'))
    assert.equal(await redis.zcard(accountKeys.minute(account.id, 'live')), served.length + 4)
    redis.disconnect()
    assert.equal((await call(1_004)).status, 200)
  })

  it('an upstream that gets more calls than it can serve does not delay the calls to another upstream', async () => {
    upstream.play('random-facts', async () => {
      await new Promise((resolve) => setTimeout(resolve, 500))
      return recorded('random-facts')
    })
    upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
    const slow = Promise.all(Array.from({ length: 30 }, () => send(gateway, FACT, { key: account.live })))
    await until(async () => upstream.arrivalsOf('random-facts').length > 4)
    const before = upstream.arrivalsOf('random-facts').length
    for (let index = 0; index < 10; index += 1) {
      assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status, 200)
    }
    const atUpstream = upstream.arrivalsOf('random-facts').length - before
    assert.ok(atUpstream < 26, 'all of the slow calls were sent before ten quick ones were answered')
    await slow
  })

  it('an overloaded upstream whose requests took longer than a caller waits gets calls again when it has free connections', async () => {
    const redis = openOperatorRedis(gateway)
    await redis.hset(capKeys.of('dog-images', 'shared', 'state'), 'serviceMs', '60000')
    redis.disconnect()
    assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status, 200)
  })
})
