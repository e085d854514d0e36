import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { send, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { type Services, startServices } from '../support/services.ts'
import { type Stage, startStage } from '../support/stage.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const [, RULE = ''] = readFileSync(join(ROOT, 'deploy/redis.acl'), 'utf8').trim().split('\n')

/** What the rule allows, in lower case: `set`, `memory|usage`. */
const allowed = new Set(RULE.split(' ').flatMap((word) => (word.startsWith('+') ? word.slice(1) : [])))

/**
 * Commands of the client itself: of its handshake, its subscriptions, its transactions and its end.
 */
const OF_THE_CLIENT = 'hello auth select ping quit info subscribe unsubscribe multi exec client|setname'

/** Sent to a Redis Cluster alone. */
const OF_A_CLUSTER = 'cluster|slots cluster|info asking'

describe('the rights that deploy/redis.acl grants', () => {
  let services: Services
  let admin: Redis
  let stage: Stage
  let gateway: Gateway

  before(async () => {
    services = await startServices()
    admin = new Redis(services.redisUrl)
    const password = randomBytes(24).toString('base64url')
    const [, name = '', ...rules] = RULE.split(' ')
    await admin.call('ACL', 'SETUSER', name, 'reset', ...rules, `>${password}`)
    const url = new URL(services.redisUrl)
    url.username = name
    url.password = password
    await admin.config('RESETSTAT')
    stage = await startStage({
      isInProcess: true,
      services: { ...services, redisUrl: url.href },
      caps: { weather: undefined, 'mock-data': undefined },
      environment: { OPS_PORT: '0' },
    })
    gateway = stage.gateway
    const weather = { time: '2026-01-01T00:00', temperature: 1, weathercode: 0 }
    stage.upstream.play('weather', () => ({ current_weather: weather }))
    stage.upstream.play('mock-data', (_request, response) => void response.writeHead(500).end())
  })
  after(async () => {
    await stage.stop()
    admin.disconnect()
    await services.stop()
  })

  it('the rights that deploy/redis.acl grants are enough for all that a gateway does, and Redis logs no refusal', async () => {
    const { live, test, token } = await signUp(gateway, 'pro')
    const path = '/v1/call/weather/current?latitude=1&longitude=1'
    const twice = await Promise.all([send(gateway, path, { key: live }), send(gateway, path, { key: live })])
    assert.deepEqual(
      twice.map(({ status }) => status),
      [200, 200],
    )
    assert.equal((await send(gateway, path, { key: live })).status, 200)
    assert.equal((await send(gateway, path, { key: test })).status, 200)
    assert.equal((await send(gateway, '/v1/call/mock-data/posts?id=1', { key: live })).status, 502)
    const later = { key: live, headers: { prefer: 'respond-async' } }
    const accepted = await send(gateway, `${path}2`, later)
    assert.equal(accepted.status, 202)
    const result = new URL(accepted.headers.get('location') ?? '', gateway.url).pathname
    await until(async () => (await send(gateway, result, { key: live })).status === 200)
    const calls = [{ api: 'weather', endpoint: '/current', parameters: { latitude: 3, longitude: 4 } }]
    // Its answer is a line of JSON for each call.
    const headers = { 'x-api-key': live, 'content-type': 'application/json' }
    const batch = await fetch(`${gateway.url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify({ calls }) })
    assert.match(await batch.text(), /"status":200/)
    const cancelled = await send(gateway, `${path}5`, later)
    const id = new URL(cancelled.headers.get('location') ?? '', gateway.url).pathname
    await send(gateway, id, { method: 'DELETE', key: live })
    for (const read of ['/v1/usage', '/v1/billing/status', '/v1/keys'])
      assert.equal((await send(gateway, read, { token })).status, 200, read)
    assert.equal((await send(gateway, '/v1/catalog/weather')).status, 200)
    assert.equal((await send(gateway, '/readyz')).status, 200)
    const console_ = await gateway.startConsole()
    const authorization = `Bearer ${gateway.environment.OPERATOR_TOKEN}`
    const operator = { url: console_, token: gateway.environment.OPERATOR_TOKEN ?? '' }
    for (const read of ['/', '/queues', '/queues/weather', '/metrics', '/v1/operator/overview', '/v1/operator/audit'])
      assert.equal((await fetch(console_ + read, { headers: { authorization } })).status, 200, read)
    for (const act of ['pause', 'resume', 'probe'])
      assert.ok(
        (await send(gateway, `/v1/operator/upstreams/weather/${act}`, { method: 'POST', ...operator })).status < 300,
      )
    assert.equal((await send(gateway, '/v1/auth/logout', { method: 'POST', token })).status, 204)
    const refused = (await admin.call('ACL', 'LOG')) as unknown[]
    assert.deepEqual(refused, [])
  })

  it('deploy/redis.acl grants the commands that the scripts and the code use, and no others', () => {
    const scripts = globSync(['src/**/*.lua', 'workers/**/*.lua', 'node_modules/bullmq/dist/cjs/commands/**/*.lua'], {
      cwd: ROOT,
    })
    const inLua = scripts.flatMap((file) =>
      [
        ...readFileSync(join(ROOT, file), 'utf8').matchAll(
          /\b(?:redis\.p?call|rcall)\(\s*["'](\w+)["'](?:, *'(USAGE)')?/g,
        ),
      ].map(([, name = '', part]) => (part ? `${name}|${part}` : name).toLowerCase()),
    )
    assert.ok(new Set(inLua).size > 50)
    for (const name of new Set(inLua)) assert.ok(allowed.has(name), `${name} of a script`)
    const code = globSync(['{src,workers}/**/*.ts', 'node_modules/bullmq/dist/cjs/classes/*.js'], { cwd: ROOT })
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n')
    const isUsed = (name: string): boolean =>
      inLua.includes(name) ||
      `${OF_THE_CLIENT} ${OF_A_CLUSTER}`.split(' ').includes(name) ||
      new RegExp(`\\.${name}(?:Buffer)?\\(`, 'i').test(code)
    assert.deepEqual(
      [...allowed].filter((name) => !isUsed(name)),
      [],
    )
    assert.match(RULE, /^user gateway on resetpass ~agw:\* &agw:\* -@all /)
  })

  it('the rights that deploy/redis.acl grants let nobody read other keys, change the server or see other connections', async (t) => {
    const url = new URL(gateway.environment.REDIS_URL ?? '')
    const redis = new Redis(url.href)
    redis.on('error', () => undefined)
    t.after(() => redis.disconnect())
    for (const [command = '', ...words] of [
      ['GET', 'other'],
      ['CONFIG', 'GET', '*'],
      ['KEYS', '*'],
      ['FLUSHALL'],
      ['CLIENT', 'LIST'],
      ['MONITOR'],
      ['ACL', 'LIST'],
      ['DEBUG', 'SLEEP', '0'],
      ['SHUTDOWN'],
      ['REPLICAOF', 'NO', 'ONE'],
      ['SCRIPT', 'FLUSH'],
      ['PUBLISH', 'other', 'x'],
    ])
      await assert.rejects(redis.call(command, ...words), /NOPERM|not allowed/, command)
  })
})
