import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openOperatorRedis } from './support/cap-state.ts'
import { type Account, send, signUp, sql } from './support/client.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from './support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'
const WINDOW_MS = 4_000

describe('when Redis lost its memory', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    upstream = await startUpstreamServer()
    upstream.play('random-facts', () => ({ id: 'a', text: 't', source: 's', source_url: 'u' }))
    gateway = await startGateway({
      workers: 2,
      environment: {
        ...upstream.environment('random-facts'),
        CALL_TIMEOUT_MS: '1500',
        UPSTREAM_RANDOM_FACTS_CAPS: `concurrency=4,2/${WINDOW_MS / 1_000}`,
      },
    })
    account = await signUp(gateway, 'pro')
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  it('caps stay closed for one window, but not on a new installation', async () => {
    assert.equal((await send(gateway, FACT, { key: account.live })).status, 200)
    assert.equal((await send(gateway, FACT, { key: account.live })).status, 200)
    // The installation is no longer new.
    await sql(gateway, "update installation set created_at = created_at - interval '1 hour'")
    const redis = openOperatorRedis(gateway)
    await redis.flushall()
    redis.disconnect()
    const refused = await send(gateway, FACT, { key: account.live })
    assert.equal(refused.status, 503, refused.text)
    assert.ok(refused.text.includes('UPSTREAM_CAP_EXHAUSTED'), refused.text)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds >= 3 && seconds <= 5, `${seconds}`)
    assert.equal(upstream.arrivals.length, 2)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    assert.equal((await send(gateway, FACT, { key: account.live })).status, 200)
    const [, second, third] = upstream.arrivals
    assert.ok((third?.at ?? 0) - (second?.at ?? 0) > WINDOW_MS)
  })
})
