import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { accountKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startStage } from '../support/stage.ts'

const FACT = '/v1/call/random-facts/random'

describe('calls in flight', () => {
  let gateway: Gateway

  before(async () => {
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":10000}}' },
    })
  })
  after(async () => await gateway.stop())

  it('calls in flight are held exactly over all nodes, and come back when their node is killed', async () => {
    const account = await signUp(gateway)
    const slow = { 'x-gateway-scenario': 'slow-1500' }
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        send(gateway, FACT, { key: account.test, url: gateway.urls[index % 2] ?? '', headers: slow }),
      ),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 5)
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(refused.length, 55)
    for (const { text, headers } of refused) {
      assert.ok(text.includes('CONCURRENCY_LIMIT_EXCEEDED'), text)
      assert.equal(headers.get('retry-after'), '1')
    }
    const { child, url } = await gateway.startWebProcess({ CALL_TIMEOUT_MS: '1000' })
    const endless = { 'x-gateway-scenario': 'slow-60000' }
    const lost = Array.from({ length: 5 }, () =>
      send(gateway, FACT, { key: account.test, url, headers: endless }).catch(() => 'no answer'),
    )
    const redis = openOperatorRedis(gateway)
    await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'test'))) === 5)
    child.kill('SIGKILL')
    assert.deepEqual(
      await Promise.all(lost),
      Array.from({ length: 5 }, () => 'no answer'),
    )
    assert.equal((await send(gateway, FACT, { key: account.test })).status, 429)
    const leases = accountKeys.inFlight(account.id, 'test')
    await until(async () => (await redis.zcount(leases, Date.now(), '+inf')) === 0)
    redis.disconnect()
    await until(async () => (await send(gateway, FACT, { key: account.test })).status === 200)
  })

  it('calls in flight end with their answer, whatever it is', async () => {
    const account = await signUp(gateway)
    const scenarios = ['upstream-500', 'timeout', 'rate-limited', 'invalid', 'slow-1']
    for (let round = 0; round < 12; round += 1) {
      const headers = { 'x-gateway-scenario': scenarios[round % 5] ?? '' }
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => send(gateway, FACT, { key: account.test, headers })),
      )
      for (const { status, text } of answers) assert.notEqual(status, 429, text)
    }
  })

  it('the refusal of a call over the number in flight says when a call of the account is expected to end, by the forecast of its wait', async (t) => {
    const stage = await startStage({
      isInProcess: true,
      caps: { currency: 'concurrency=4,1/6' },
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":1}}' },
    })
    t.after(() => stage.stop())
    stage.upstream.play('currency', () => ({ base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }))
    const { account } = stage
    const call = (signal?: AbortSignal) =>
      send(stage.gateway, `/v1/call/currency/latest?nonce=${randomUUID()}`, {
        key: account.live,
        ...(signal && { signal }),
      })
    const inFlight = () => stage.redis.zcard(accountKeys.inFlight(account.id, 'live'))
    assert.equal((await call()).status, 200)
    await until(async () => (await inFlight()) === 0)
    const left = new AbortController()
    // It waits six seconds for the next slot of the cap.
    const waiting = call(left.signal).catch(() => undefined)
    await until(async () => (await inFlight()) === 1)
    let refused = await call()
    await until(async () => {
      refused = await call()
      return Number(refused.headers.get('retry-after')) > 1
    }, 4_000)
    assert.equal(refused.status, 429)
    assert.match(refused.body.error.hint, /is expected to have ended\. limit=1 .*retry_after=[3-8]$/)
    left.abort()
    await waiting
  })
})
