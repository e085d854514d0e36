import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { openOperatorRedis } from '../support/cap-state.ts'
import { send, signUp, signUpThroughApi, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const CALL = '/v1/call/weather/current?latitude=40.7&longitude=-74'

describe('leaving', () => {
  let gateway: Gateway
  let upstream: UpstreamServer

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      environment: upstream.environment('geocoding', 'code-host-user'),
    })
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  const leave = (token: string, password: string) =>
    send(gateway, '/v1/me', { method: 'DELETE', token, body: { password } })

  /** Tables with a row that holds a text. */
  const tablesWith = async (text: string): Promise<string[]> => {
    const tables = await sql<{ name: string }>(
      gateway,
      "select tablename as name from pg_tables where schemaname = 'public' and tablename not like 'kysely%'",
    )
    const found = []
    for (const { name } of tables) {
      const [row] = await sql<{ count: string }>(
        gateway,
        `select count(*) as count from "${name}" as t where position($1 in t::text) > 0`,
        [text],
      )
      if (Number(row?.count) > 0) found.push(name)
    }
    return found
  }

  /** Keys of Redis whose name or value holds a text. */
  const redisKeysWith = async (text: string): Promise<string[]> => {
    const redis = openOperatorRedis(gateway)
    try {
      const found = []
      for (const key of await redis.keys('*')) {
        const dump = (await redis.dumpBuffer(key)) ?? Buffer.alloc(0)
        if (key.includes(text) || dump.includes(text)) found.push(key)
      }
      return found
    } finally {
      redis.disconnect()
    }
  }

  it('a key and a team that are created while the account is deleted are refused as of an account that is gone', async () => {
    const owner = await signUp(gateway)
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Team' } })).body
    for (const [path, wanted] of [
      ['/v1/keys', { environment: 'test' }],
      ['/v1/keys', { environment: 'test', teamId: team.id }],
      ['/v1/teams', { name: 'a team' }],
    ] as const) {
      const account = await signUp(gateway)
      const added = { email: account.email, role: 'admin' }
      await send(gateway, `/v1/teams/${team.id}/members`, { token: owner.token, body: added })
      const client = new pg.Client(gateway.services.databaseUrl)
      await client.connect()
      try {
        await client.query('begin')
        await client.query('delete from users where id = $1', [account.id])
        const created = send(gateway, path, { token: account.token, body: wanted })
        await until(async () => {
          const [row] = await sql<{ count: string }>(
            gateway,
            "select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          )
          return Number(row?.count) > 0
        })
        await client.query('commit')
        const { status, body } = await created
        assert.deepEqual([path, status, body.code], [path, 401, 'INVALID_TOKEN'])
      } finally {
        await client.end()
      }
    }
  })

  it('an account that leaves is refused on every node at once, and nothing of the person is left in Postgres or Redis', async () => {
    const account = await signUpThroughApi(gateway)
    const label = 'the label of a person who leaves'
    const { body: labelled } = await send(gateway, '/v1/keys', {
      token: account.token,
      body: { label, environment: 'test' },
    })
    await send(gateway, '/v1/provider-keys/code-host-user', {
      method: 'PUT',
      token: account.token,
      body: { key: 'a key of mine 1234'.replaceAll(' ', '-') },
    })
    const asynchronous = await send(gateway, CALL, { key: labelled.key, headers: { prefer: 'respond-async' } })
    const location = asynchronous.headers.get('location') ?? ''
    await until(async () => (await send(gateway, location, { key: labelled.key })).status === 200)
    for (const text of [account.email, label]) assert.notDeepEqual(await tablesWith(text), [])

    const wrong = await leave(account.token, 'not the password')
    assert.deepEqual([wrong.status, wrong.body.code], [401, 'INVALID_CREDENTIALS'])
    assert.equal((await leave(account.token, account.password)).status, 204)
    for (const url of gateway.urls) {
      assert.equal((await send(gateway, '/v1/me', { token: account.token, url })).status, 401)
      for (const key of [account.live, account.test, labelled.key])
        assert.equal((await send(gateway, CALL, { key, url })).status, 401)
    }
    const { status } = await send(gateway, '/v1/auth/login', {
      body: { email: account.email, password: account.password },
    })
    assert.equal(status, 401)
    for (const text of [account.email, label, '1234']) {
      const tables = await tablesWith(text)
      assert.ok(!tables.includes('users') && !tables.includes('api_keys') && !tables.includes('provider_keys'), text)
    }
    for (const text of [account.email, label]) {
      assert.deepEqual(await tablesWith(text), [])
      assert.deepEqual(await redisKeysWith(text), [])
    }
    // The account's id stays in counts and in the log of calls, which deletes it after its days.
    assert.deepEqual(
      (await tablesWith(account.id)).filter((table) => !/^(usage|refusals)_daily$|^audit_log$|^call_log/.test(table)),
      [],
    )
    const ofCall = await redisKeysWith(location.split('/').at(-1) ?? '')
    assert.deepEqual(
      ofCall.filter((key) => /:(result|call|results):/.test(key)),
      [],
      'the kept result is gone',
    )
  })

  it('an account that owns teams cannot be deleted until the teams are handed over or deleted, and the refusal names the teams', async () => {
    const [owner, member] = [await signUp(gateway), await signUp(gateway)]
    const team = async (name: string) =>
      (await send(gateway, '/v1/teams', { token: owner.token, body: { name } })).body.team.id
    const [first, second] = [await team('Red'), await team('Blue')]
    await send(gateway, `/v1/teams/${first}/members`, { token: owner.token, body: { email: member.email } })
    const refused = await leave(owner.token, owner.password)
    assert.deepEqual([refused.status, refused.body.code], [409, 'TEAM_OWNER'])
    assert.match(refused.body.message, /(Red, Blue|Blue, Red)/)
    assert.equal((await send(gateway, '/v1/me', { token: owner.token })).status, 200)
    await send(gateway, `/v1/teams/${first}/transfer`, { token: owner.token, body: { memberId: member.id } })
    await send(gateway, `/v1/teams/${second}`, { method: 'DELETE', token: owner.token })
    assert.equal((await leave(owner.token, owner.password)).status, 204)
    const { body } = await send(gateway, `/v1/teams/${first}`, { token: member.token })
    assert.deepEqual(
      body.members.map(({ id }: { id: string }) => id),
      [member.id],
    )
  })

  it('calls under way end when their account leaves, and never reach the upstream afterwards', async () => {
    const account = await signUp(gateway)
    upstream.play('geocoding', () => new Promise(() => undefined))
    const waiting = send(gateway, '/v1/call/geocoding/search?q=somewhere', { key: account.live })
    const asynchronous = await send(gateway, '/v1/call/geocoding/search?q=elsewhere', {
      key: account.live,
      headers: { prefer: 'respond-async' },
    })
    assert.equal(asynchronous.status, 202)
    assert.equal((await leave(account.token, account.password)).status, 204)
    const ended = await waiting
    assert.ok(ended.status >= 400, `${ended.status}`)
    const redis = openOperatorRedis(gateway)
    try {
      await until(async () => (await redis.zcard(`agw:{a:${account.id}}:live:inflight`)) === 0)
    } finally {
      redis.disconnect()
    }
  })

  it('an export has all of the account and nothing of others, with a year of usage, and no secret', async () => {
    const [account, other] = [await signUp(gateway), await signUp(gateway)]
    await send(gateway, '/v1/keys', { token: account.token, body: { label: 'exported', environment: 'test' } })
    await send(gateway, '/v1/keys', { token: other.token, body: { label: 'of another', environment: 'test' } })
    await send(gateway, '/v1/teams', { token: account.token, body: { name: 'My team' } })
    await send(gateway, CALL, { key: account.test })
    await until(async () => (await sql(gateway, 'select from call_log where account_id = $1', [account.id])).length > 0)
    // 365 days of 30 rows make several pages.
    await sql(
      gateway,
      `insert into usage_daily (user_id, day, key, slug, status, mode, calls)
       select $1::uuid, (now() - make_interval(days => d))::date, 'session', 'api-' || n, 200, 'live', d + 1
       from generate_series(0, 364) as d, generate_series(1, 30) as n`,
      [account.id],
    )
    const { status, headers, body, text } = await send(gateway, '/v1/me/export', { token: account.token })
    assert.equal(status, 200)
    assert.match(headers.get('content-disposition') ?? '', /account\.json/)
    assert.equal(body.profile.email, account.email)
    assert.deepEqual(
      body.calls.map(({ slug, status }: { slug: string; status: number }) => [slug, status]),
      [['weather', 200]],
    )
    const sessions = body.usage.filter(({ key }: { key: string }) => key === 'session')
    assert.equal(new Set(sessions.map((row: object) => JSON.stringify(row))).size, 365 * 30)
    assert.ok(body.keys.some(({ label }: { label: string }) => label === 'exported'))
    assert.deepEqual(
      body.teams.map(({ name, role }: { name: string; role: string }) => [name, role]),
      [['My team', 'owner']],
    )
    assert.ok(!text.includes('of another') && !text.includes(other.email) && !text.includes(other.id))
    for (const secret of [account.live, account.test, '$argon2id$']) assert.ok(!text.includes(secret))
    // The head alone is no export.
    for (let count = 0; count < 4; count += 1)
      assert.equal((await send(gateway, '/v1/me/export', { method: 'HEAD', token: account.token })).status, 200)
    await send(gateway, '/v1/me/export', { token: account.token })
    await send(gateway, '/v1/me/export', { token: account.token })
    const fourth = await send(gateway, '/v1/me/export', { token: account.token })
    assert.deepEqual([fourth.status, fourth.body.code], [429, 'RATE_LIMIT_EXCEEDED'])
  })
})
