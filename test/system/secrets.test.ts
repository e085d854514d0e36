import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { type Account, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const mark = (name: string) => `${name}-${randomBytes(18).toString('hex')}`

describe('no secret is found', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let redis: Redis
  let account: Account
  /** Every secret used, by what it is. */
  const secrets: Record<string, string> = {}
  /** Every answer, except the answers that show a secret for the only time. */
  const answers: string[] = []

  before(async () => {
    upstream = await startUpstreamServer()
    const newsAnswer = (await loadUpstreams()).get('news')?.endpoints['/top']?.example.response
    upstream.play('news', ({ url }, response) => {
      if (url.includes(encodeURIComponent(secrets['provider key'] ?? 'none'))) return newsAnswer
      return void response.writeHead(401, { 'content-type': 'application/json' }).end(`{"errors":["${url}"]}`)
    })
    upstream.play('mock-data', ({ url }, response) => void response.writeHead(500).end(url))
    gateway = await startGateway({
      environment: {
        ...upstream.environment('news', 'mock-data'),
        UPSTREAM_NEWS_CAPS: 'concurrency=10,1000/1',
        LOG_LEVEL: 'trace',
        OPS_PORT: '0',
      },
    })
    redis = new Redis(gateway.services.redisUrl)
    // DUMP packs values, so a search could not find a secret in them.
    await redis.config('SET', 'rdbcompression', 'no')
    for (const name of ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY', 'OPERATOR_TOKEN']) {
      secrets[name] = gateway.environment[name] ?? assert.fail(name)
    }
    await useEverything(await gateway.startConsole())
  })
  after(async () => {
    redis.disconnect()
    await gateway.stop()
    await upstream.close()
  })

  async function ask(path: string, options: Parameters<typeof send>[2] = {}) {
    const answer = await send(gateway, path, options)
    answers.push(answer.text, JSON.stringify([...answer.headers]))
    return answer
  }

  /**
   * Logs in on the console's form.
   * @returns the status
   */
  async function logInToConsole(ops: string, token: string): Promise<number> {
    const body = new URLSearchParams({ token })
    const response = await fetch(`${ops}/login`, { method: 'POST', body, headers: { origin: ops }, redirect: 'manual' })
    answers.push(await response.text(), JSON.stringify([...response.headers]))
    return response.status
  }

  /**
   * Uses each secret in every possible way, rightly and wrongly, and leaves a job that waits with
   * one of them.
   */
  async function useEverything(ops: string): Promise<void> {
    account = await signUp(gateway, 'pro')
    const fresh = mark('new-password')
    Object.assign(secrets, {
      password: account.password,
      'new password': fresh,
      'wrong password': mark('wrong-password'),
      'live key': account.live,
      'test key': account.test,
      'session token': account.token,
      'provider key': mark('provider-key'),
      'refused provider key': mark('refused-key'),
      'operator key': mark('operator-key'),
    })
    const { token } = account
    const { email } = account
    const login = await send(gateway, '/v1/auth/login', { body: { email, password: account.password } })
    secrets['second token'] = login.body.token
    await ask('/v1/auth/login', { body: { email, password: secrets['wrong password'] } })
    await ask('/v1/auth/login', { body: { email, password: { nested: secrets['wrong password'] } } })
    await ask('/v1/auth/password', { token, body: { currentPassword: account.password, newPassword: fresh } })
    await ask('/v1/me', { token: secrets['second token'] })
    const operator = { token: secrets.OPERATOR_TOKEN, url: ops }
    secrets['wrong operator token'] = mark('wrong-operator-token')
    assert.equal(await logInToConsole(ops, secrets.OPERATOR_TOKEN ?? ''), 303)
    assert.equal(await logInToConsole(ops, secrets['wrong operator token']), 401)
    // If the operator has not enabled an API, no key of a caller opens it.
    await ask('/v1/operator/upstreams/news', { method: 'PATCH', ...operator, body: { enabled: true } })
    await until(
      async () => (await ask('/v1/call/news/top', { key: account.live })).body.error?.code === 'PROVIDER_KEY_REQUIRED',
    )
    const put = (key: string) => ask('/v1/provider-keys/news', { method: 'PUT', token, body: { key } })
    await put(secrets['refused provider key'] ?? '')
    await ask('/v1/provider-keys/news/validate', { method: 'POST', token })
    await ask('/v1/call/news/top', { key: account.live })
    await put(secrets['provider key'] ?? '')
    assert.equal((await ask('/v1/provider-keys/news/validate', { method: 'POST', token })).body.status, 'valid')
    // The worker knows within a second that the operator enabled it.
    await until(async () => (await ask('/v1/call/news/top', { key: account.live })).status === 200)
    await ask('/v1/call/news/top?apikey=x', { headers: { authorization: `Bearer ${account.live}` } })
    await ask('/v1/call/news/search?q=async', { key: account.live, headers: { prefer: 'respond-async' } })
    await ask('/v1/call/mock-data/posts?id=1', { key: account.live })
    await ask('/v1/call/mock-data/posts?id=1', { key: account.test, headers: { 'x-gateway-scenario': 'upstream-500' } })
    await ask('/v1/call/mock-data/posts?id=1', { token })
    for (const path of ['/v1/keys', '/v1/teams', '/v1/provider-keys', '/v1/billing/status', '/v1/usage']) {
      await ask(path, { token })
    }
    await ask('/v1/operator/upstreams/weather', {
      method: 'PATCH',
      ...operator,
      body: { key: secrets['operator key'] },
    })
    for (const path of ['users', 'upstreams', 'overview', 'audit']) await ask(`/v1/operator/${path}`, operator)
    await ask('/v1/operator/upstreams/news/pause', { method: 'POST', ...operator, body: { mode: 'hold' } })
    await ask('/v1/call/news/search?q=waiting', { key: account.live, headers: { prefer: 'respond-async' } })
    await until(async () => (await sql(gateway, 'select 1 from usage_daily')).length > 0)
  }

  /** The forms in which a secret might appear somewhere. */
  function assertAbsent(text: string, where: string): void {
    for (const [name, secret] of Object.entries(secrets)) {
      const bytes = Buffer.from(secret)
      for (const form of [
        secret,
        bytes.toString('hex'),
        bytes.toString('base64').replace(/=+$/, ''),
        encodeURIComponent(secret),
      ]) {
        assert.ok(!text.includes(form), `the ${name} is in ${where}`)
      }
    }
  }

  it('no secret is found in the database: all rows of all tables', async () => {
    const tables = await sql<{ name: string }>(
      gateway,
      `select table_name as name from information_schema.tables where table_schema = 'public'`,
    )
    assert.ok(tables.length >= 10)
    let found = false
    for (const { name } of tables) {
      const rows = await sql<{ row: string }>(gateway, `select t::text as row from "${name}" t`)
      for (const { row } of rows) {
        assertAbsent(row, `table ${name}`)
        found ||= row.includes(account.email)
      }
    }
    // If the search could not find anything, it would find no secret either.
    assert.ok(found, 'the address of the account is in its row')
  })

  it('no secret is found in Redis: every key, as it is dumped and as it is kept on disk', async () => {
    const keys: Buffer[] = []
    for await (const found of redis.scanBufferStream()) keys.push(...(found as Buffer[]))
    assert.ok(
      keys.some((key) => key.includes('{news}:')),
      'the waiting job is there',
    )
    let found = false
    for (const key of keys) {
      const dump = await redis.dumpBuffer(key as never)
      found ||= dump?.includes(account.id) === true
      assertAbsent(key.toString('latin1'), 'the name of a Redis key')
      assertAbsent(dump?.toString('latin1') ?? '', `Redis key ${key}`)
    }
    assert.ok(found, 'the id of the account is in the waiting job')
    for (const file of await filesUnder(gateway.services.folder)) {
      if (!/aof|rdb/.test(file)) continue
      assertAbsent((await readFile(file)).toString('latin1'), file)
    }
  })

  it('no secret is found in the log at its most talkative, nor in an answer', async () => {
    const log = await gateway.allOutput()
    assert.ok(log.split('\n').length > 10)
    assertAbsent(log, 'the log')
    assertAbsent(answers.join('\n'), 'an answer')
  })
})

async function filesUnder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
