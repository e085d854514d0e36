import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const PROFILE = JSON.stringify(recorded('code-host-user'))

describe('an upstream whose key operators replace', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let redis: Redis
  let ops = ''
  let live = ''
  let named = 0

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      environment: { ...upstream.environment('code-host-user'), OPS_PORT: '0' },
    })
    redis = openOperatorRedis(gateway)
    ops = await gateway.startConsole()
    live = (await signUp(gateway)).live
  })
  after(async () => {
    redis.disconnect()
    await gateway.stop()
    await upstream.close()
  })
  beforeEach(async () => {
    await store('first')
    upstream.arrivals.length = 0
  })

  const operator = (path: string, options: { method: string; body?: unknown }) =>
    send(gateway, `/v1/operator/upstreams/code-host-user${path}`, {
      ...options,
      token: gateway.environment.OPERATOR_TOKEN,
      url: ops,
    })
  const change = async (body: object) => {
    assert.equal((await operator('', { method: 'PATCH', body })).status, 200)
  }
  const store = (key: string | null) => change({ key })
  /** The name is new for each call, so that no answer is a stored answer. */
  const call = (options: { headers?: Record<string, string> } = {}) => {
    named += 1
    return send(gateway, `/v1/call/code-host-user/profile?username=n${named}`, { key: live, ...options })
  }
  const statusOf = async () => (await call()).status
  const sentKeys = () => upstream.arrivalsOf('code-host-user').map((arrival) => arrival.headers.authorization)
  const waiters = () => redis.zcard(capKeys.of('code-host-user', SHARED_BUCKET, 'waiters'))

  it('a key of this service is refused as the key of an upstream', async () => {
    const { status, body } = await operator('', { method: 'PATCH', body: { key: live } })
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'])
    assert.equal(body.message, 'This is a key of this service, which is never sent to an upstream.')
  })

  it('the limit that a source reported for one key is reset when the operator stores another key', async () => {
    upstream.play('code-host-user', (_arrival, response) => {
      const reset = String(Math.ceil(Date.now() / 1_000) + 3_000)
      const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset, 'x-ratelimit-resource': 'core' }
      response.writeHead(200, headers).end(PROFILE)
    })
    assert.deepEqual([await statusOf(), await statusOf()], [200, 502])
    await store('another')
    assert.deepEqual([await statusOf(), await statusOf()], [200, 502])
    await store(null)
    assert.equal(await statusOf(), 200)
  })

  it('the limit that a source reported still applies if the settings are reset and no key was stored', async () => {
    await store(null)
    upstream.play('code-host-user', (_arrival, response) => {
      response.writeHead(429, { 'retry-after': '300' }).end()
    })
    assert.equal(await statusOf(), 502)
    await change({ enabled: null, tierRequired: null, caps: null, key: null })
    upstream.play('code-host-user', (_arrival, response) => void response.writeHead(200).end(PROFILE))
    assert.equal(await statusOf(), 502)
    assert.equal(sentKeys().length, 1)
    await store('second')
    await change({ enabled: null, tierRequired: null, caps: null, key: null })
    assert.equal(await statusOf(), 200)
  })

  it('a call that waits while the operator changes the key is sent with the new key', async () => {
    upstream.play('code-host-user', ({ headers }, response) => {
      const status = headers.authorization === 'Bearer first' ? 429 : 200
      response.writeHead(status, { 'retry-after': '300' }).end(PROFILE)
    })
    assert.equal(await statusOf(), 502)
    const { headers: accepted } = await call({ headers: { prefer: 'respond-async' } })
    await until(async () => (await waiters()) === 1)
    await store('second')
    const result = accepted.get('location') ?? ''
    await until(async () => (await send(gateway, result, { key: live })).status === 200)
    assert.deepEqual(sentKeys(), ['Bearer first', 'Bearer second'])
  })

  it('a probe that waits while the operator changes the key is sent with the new key', async () => {
    upstream.play('code-host-user', ({ headers }, response) => {
      const status = headers.authorization === 'Bearer first' ? 429 : 200
      response.writeHead(status, { 'retry-after': '25' }).end(PROFILE)
    })
    assert.equal(await statusOf(), 502)
    const probed = operator('/probe', { method: 'POST' })
    await until(async () => (await waiters()) === 1)
    await store('second')
    assert.equal((await probed).body.outcome?.status, 200)
    assert.deepEqual(sentKeys(), ['Bearer first', 'Bearer second'])
  })

  it('a limit that the source reports for the old key afterwards does not apply to the new key', async () => {
    const { promise: replaced, resolve } = Promise.withResolvers<void>()
    upstream.play('code-host-user', async ({ headers }, response) => {
      if (headers.authorization === 'Bearer second') return void response.writeHead(200).end(PROFILE)
      await replaced
      response.writeHead(429, { 'retry-after': '300' }).end()
    })
    const early = statusOf()
    await until(() => sentKeys().length === 1)
    await store('second')
    resolve()
    assert.equal(await early, 502)
    assert.equal(await statusOf(), 200)
  })
})
