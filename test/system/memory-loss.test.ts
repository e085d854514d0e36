import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, type Answer, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type OwnServices, startOwnServices } from '../support/services.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'
const WINDOW_MS = 4_000

describe('when Redis lost its memory', () => {
  let services: OwnServices
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    upstream = await startUpstreamServer()
    upstream.play('random-facts', () => ({
      id: 'a',
      text: 't',
      source: 's',
      source_url: 'u',
      language: 'en',
      permalink: 'p',
    }))
    services = await startOwnServices()
    gateway = await startGateway({
      services,
      isInProcess: true,
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
    await services.stop()
    await upstream.close()
  })

  const call = (): Promise<Answer> => send(gateway, FACT, { key: account.live })

  /** The first answer that needs Redis. Each connection notices by itself that Redis is back. */
  async function callWhenBack(): Promise<Answer> {
    let answer = await call()
    await until(async () => {
      if (answer.text.includes('DEPENDENCY_UNAVAILABLE')) answer = await call()
      return !answer.text.includes('DEPENDENCY_UNAVAILABLE')
    })
    return answer
  }

  /**
   * The gateway refuses calls for the rest of a window and sends nothing meanwhile. Then it serves
   * them.
   */
  async function assertClosedForOneWindow(): Promise<void> {
    const before = upstream.arrivals.length
    const refused = await callWhenBack()
    assert.equal(refused.status, 503, refused.text)
    assert.ok(refused.text.includes('UPSTREAM_CAP_EXHAUSTED'), refused.text)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 5, `${seconds}`)
    assert.equal(upstream.arrivals.length, before)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    assert.equal((await call()).status, 200)
    const [last, next] = upstream.arrivals.slice(-2)
    assert.ok((next?.at ?? 0) - (last?.at ?? 0) > WINDOW_MS)
  }

  it('when Redis lost its memory by a flush, caps stay closed for one window, but not on a new installation', async () => {
    assert.equal((await call()).status, 200)
    assert.equal((await call()).status, 200)
    // The installation is no longer new.
    await sql(gateway, "update installation set created_at = created_at - interval '1 hour'")
    const redis = openOperatorRedis(gateway)
    await redis.flushall()
    redis.disconnect()
    await assertClosedForOneWindow()
  })

  it('when Redis lost its memory by a crash that destroyed its files, caps stay closed for one window too', async () => {
    await services.restartRedis({ isWiped: true })
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
    await assertClosedForOneWindow()
  })

  it('after a crash of Redis that left its files intact, the caps are as they were', async () => {
    // The rest of the window before, and the part that is used up now.
    await until(async () => (await call()).status === 503)
    const before = upstream.arrivals.length
    await services.restartRedis({ isWiped: false })
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
    const { status, text } = await callWhenBack()
    // A machine that was busy for a whole window serves it.
    assert.ok(status === 200 || text.includes('UPSTREAM_CAP_EXHAUSTED'), text)
    await until(async () => (await call()).status === 200)
    const [second, next] = [upstream.arrivals[before - 2], upstream.arrivals[before]]
    assert.ok((next?.at ?? 0) - (second?.at ?? 0) > WINDOW_MS, 'two requests in the window of the crash, and no third')
  })
})
