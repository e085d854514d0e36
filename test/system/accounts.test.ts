import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { hashPassword } from '../../src/accounts/password.ts'
import { signSessionToken } from '../../src/accounts/session-token.ts'
import { loadConfig } from '../../src/config.ts'
import { keys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, type Answer, createKey, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'

const EXAMPLE_CALL = '/v1/call/weather/current?latitude=40.7&longitude=-74'

let gateway: Gateway
let account: Account
let first = ''
let second = ''

before(async () => {
  gateway = await startGateway({
    isInProcess: true,
    webNodes: 2,
    environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
  })
  account = await signUp(gateway)
  first = gateway.urls[0] ?? ''
  second = gateway.urls[1] ?? ''
})
after(async () => await gateway.stop())

describe('accounts', () => {
  const logIn = async (email: string, password: string, url = first) =>
    await send(gateway, '/v1/auth/login', { body: { email, password }, url })

  it('accounts sign up once per address, whatever its case and however many try at once', async () => {
    const name = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => {
        const email = `${index % 3 === 0 ? name.toUpperCase() : name}@example.com`
        return send(gateway, '/v1/auth/signup', {
          body: { email, password: 'long enough' },
          url: gateway.urls[index % 2] ?? '',
        })
      }),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(5).fill(400)])
    const refused = answers.find(({ status }) => status === 400)
    assert.equal(refused?.body.code, 'EMAIL_IN_USE')
  })

  it('accounts show their profile, in which no acceptance of terms is recorded, because the gateway shows no terms', async () => {
    const { status, body } = await send(gateway, '/v1/me', { token: account.token })
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body).sort(), ['email', 'id', 'termsAcceptedAt', 'tier'])
    assert.equal(body.email, account.email)
    assert.equal(body.tier, 'developer')
    assert.equal(body.termsAcceptedAt, null)
  })

  it('accounts give the same answer to an unknown address, a wrong password and an impossible password', async () => {
    const answers = await Promise.all([
      logIn(`${randomUUID()}@example.com`, 'some password'),
      logIn(account.email, 'some password'),
      logIn(account.email, ''),
      logIn(account.email, 'x'.repeat(257)),
      logIn('not an address', 'some password'),
    ])
    assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))].length, 1)
    assert.equal(answers[0]?.status, 401)
    assert.equal(answers[0]?.body.code, 'INVALID_CREDENTIALS')
  })

  it('accounts accept passwords unchanged: spaces, Unicode and all of up to 256 characters count', async () => {
    const email = `${randomUUID()}@example.com`
    const password = ` ${'😀'.repeat(127)}${'é'.repeat(127)} `
    assert.equal((await send(gateway, '/v1/auth/signup', { body: { email, password } })).status, 201)
    assert.equal((await logIn(email, password)).status, 200)
    assert.equal((await logIn(email, password.trim())).status, 401)
    assert.equal((await logIn(email, password.slice(0, -1))).status, 401)
    for (const bad of ['seven77', '😀'.repeat(7), 'x'.repeat(257)]) {
      const { status, body } = await send(gateway, '/v1/auth/signup', {
        body: { email: 'a@example.com', password: bad },
      })
      assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'])
    }
  })

  it('accounts are found by their address in any case, and by no other spelling of it', async () => {
    const [email, password] = [`ivy-${randomUUID()}@example.com`, 'a good password']
    await send(gateway, '/v1/auth/signup', { body: { email, password } })
    assert.equal((await logIn(email.toUpperCase(), password)).status, 200)
    // Postgres lowers it to an i, and JavaScript does not. If the limit used the text, each
    // spelling would have failures of its own.
    assert.equal((await logIn(email.replace('i', '\u0130'), password)).status, 401)
  })

  it('accounts keep argon2id hashes, made anew at the log-in after the costs were raised', async () => {
    const person = await signUp(gateway)
    const [row] = await sql<{ password_hash: string }>(gateway, 'select password_hash from users where id = $1', [
      person.id,
    ])
    assert.match(row?.password_hash ?? '', /^\$argon2id\$v=19\$m=19456,(t=3,p=1|p=1,t=3)\$/)
    const { hash } = await import('argon2')
    const cheap = await hash(person.password, { memoryCost: 8_192, timeCost: 1, parallelism: 1 })
    await sql(gateway, 'update users set password_hash = $1 where id = $2', [cheap, person.id])
    assert.equal((await logIn(person.email, person.password)).status, 200)
    const [after] = await sql<{ password_hash: string }>(gateway, 'select password_hash from users where id = $1', [
      person.id,
    ])
    assert.match(after?.password_hash ?? '', /^\$argon2id\$v=19\$m=19456,(t=3,p=1|p=1,t=3)\$/)
  })

  it('accounts log out: the session is refused at once on both nodes, for account routes and calls', async () => {
    const { body } = await logIn(account.email, account.password)
    for (const url of gateway.urls) {
      assert.equal((await send(gateway, '/v1/me', { token: body.token, url })).status, 200)
      // The parameters are bad, so a session that passes sends no request to the upstream.
      assert.equal((await send(gateway, '/v1/call/weather/current', { token: body.token, url })).status, 400)
    }
    assert.equal(
      (await send(gateway, '/v1/auth/logout', { method: 'POST', token: body.token, url: first })).status,
      204,
    )
    for (const url of [second, first]) {
      assert.equal((await send(gateway, '/v1/me', { token: body.token, url })).body.code, 'INVALID_TOKEN')
      const call = await send(gateway, EXAMPLE_CALL, { token: body.token, url })
      assert.deepEqual([call.status, call.body.error.code], [401, 'INVALID_TOKEN'])
    }
    assert.equal((await send(gateway, '/v1/me', { token: account.token })).status, 200)
  })

  it('accounts change the password: other sessions end, this session stays, only the new password logs in', async () => {
    const person = await signUp(gateway)
    const other = (await logIn(person.email, person.password, second)).body.token
    const change = (currentPassword: string, newPassword: string) =>
      send(gateway, '/v1/auth/password', { token: person.token, body: { currentPassword, newPassword } })
    const refused = await change('wrong password', 'the new password')
    assert.deepEqual([refused.status, refused.body.code], [401, 'INVALID_CREDENTIALS'])
    assert.equal(refused.body.message, 'The current password is wrong.')
    assert.equal(refused.body.hint, 'Enter it again. param=currentPassword')
    assert.equal((await change(person.password, 'short')).status, 400)
    assert.equal((await change(person.password, 'the new password')).status, 204)
    assert.equal((await send(gateway, '/v1/me', { token: person.token })).status, 200)
    assert.equal((await send(gateway, '/v1/me', { token: other, url: second })).status, 401)
    assert.equal((await logIn(person.email, person.password)).status, 401)
    assert.equal((await logIn(person.email, 'the new password')).status, 200)
    assert.equal((await send(gateway, EXAMPLE_CALL, { key: person.test })).status, 200)
  })

  it('accounts get no session by a password that is changed, or when disabled, while it is compared', async () => {
    const otherHash = await hashPassword('another password')
    for (const change of [
      'password_hash = $2::text',
      'disabled_at = case when $2::text <> password_hash then now() end',
    ]) {
      const person = await signUp(gateway)
      const client = new pg.Client({ connectionString: gateway.services.databaseUrl })
      await client.connect()
      await client.query('begin')
      await client.query(`update users set ${change} where email = $1`, [person.email, otherHash])
      const answer = logIn(person.email, person.password)
      // It has matched the password that is still in force, and waits for the change to end.
      const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
      await until(async () => (await sql(gateway, waiting)).length > 0)
      await client.query('commit')
      await client.end()
      assert.equal((await answer).status, 401, change)
    }
  })

  it('accounts cannot create a key with a body that arrives after the log-out', async () => {
    const person = await signUp(gateway)
    const { hostname, port } = new URL(first)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.write(
      `POST /v1/keys HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${person.token}\r\n` +
        'content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{',
    )
    // The node has read the header fields, because it answers requests that came later.
    for (let index = 0; index < 3; index += 1) {
      assert.equal((await send(gateway, '/v1/me', { token: person.token })).status, 200)
    }
    assert.equal((await send(gateway, '/v1/auth/logout', { token: person.token, method: 'POST' })).status, 204)
    socket.write('}')
    assert.match((await text(socket)).split('\r\n')[0] ?? '', / 401 /)
  })

  it('accounts refuse tokens that are forged, altered or of another kind', async () => {
    const { jwt } = loadConfig(gateway.environment).secrets
    const [head = '', claims = '', signature = ''] = account.token.split('.')
    const [secret] = jwt
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
    const sign = (header: object, payload: object, algorithm = 'sha256') => {
      const start = `${encode({ ...decode(head), ...header })}.${encode({ ...decode(claims), ...payload })}`
      return `${start}.${createHmac(algorithm, secret?.bytes ?? '')
        .update(start)
        .digest('base64url')}`
    }
    assert.equal((await send(gateway, '/v1/me', { token: sign({}, {}) })).status, 200)
    const forged = [
      `${encode({ ...decode(head), alg: 'none' })}.${claims}.`,
      `${encode({ ...decode(head), alg: 'None' })}.${claims}.${signature}`,
      `${head}.${claims}`,
      `${head}.${claims}.`,
      `${head}.${encode({ ...decode(claims), sub: randomUUID() })}.${signature}`,
      sign({ alg: 'HS512' }, {}, 'sha512'),
      sign({ alg: 'HS384' }, {}, 'sha384'),
      sign({ alg: 'RS256' }, {}),
      sign({ kid: '../../dev/null' }, {}),
      sign({ kid: undefined }, {}),
      sign({ typ: 'JWT' }, {}),
      sign({ crit: ['b64'] }, {}),
      sign({}, { iss: 'someone else' }),
      sign({}, { aud: 'someone else' }),
      sign({}, { exp: undefined }),
      sign({}, { exp: '9999999999' }),
      sign({}, { iat: Math.floor(Date.now() / 1_000) + 3_600 }),
      sign({}, { nbf: Math.floor(Date.now() / 1_000) + 3_600 }),
      sign({}, { sub: undefined }),
      sign({}, { sid: undefined }),
      sign({}, { sid: randomUUID() }),
      sign({}, { sid: "' or 1=1" }),
      'a.b.c',
      'x'.repeat(5_000),
    ]
    for (const path of ['/v1/me', EXAMPLE_CALL]) {
      for (const token of forged) {
        const answer = await send(gateway, path, { token })
        const code = answer.body.code ?? answer.body.error?.code
        assert.deepEqual([answer.status, code], [401, 'INVALID_TOKEN'], token.slice(0, 300))
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
      }
      const expired = await send(gateway, path, { token: sign({}, { exp: Math.floor(Date.now() / 1_000) - 60 }) })
      assert.equal(expired.body.code ?? expired.body.error.code, 'TOKEN_EXPIRED')
    }
  })

  it('accounts can log in on a node whose machine has another time, and go on at another node at once', async (t) => {
    const { email, password } = account
    for (const aheadMs of [10_000, -3_600_000, 48 * 3_600_000]) {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() + aheadMs })
      const { body } = await send(gateway, '/v1/auth/login', { body: { email, password }, url: first })
      t.mock.timers.reset()
      for (const path of ['/v1/me', EXAMPLE_CALL]) {
        const headers = { 'x-gateway-mode': 'test' }
        const { status, text } = await send(gateway, path, { token: body.token, headers, url: second })
        assert.equal(status, 200, `${aheadMs}: ${text}`)
      }
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() + aheadMs })
      const { status, text } = await send(gateway, '/v1/me', { token: body.token, url: first })
      t.mock.timers.reset()
      assert.equal(status, 200, `${aheadMs}: ${text}`)
    }
  })

  it('accounts are the same in every Unicode form of their address and password, and names are stored in one form', async () => {
    const name = randomUUID()
    const password = 'p\u00e4ssw\u00f6rt \u00e9t\u00e9'
    const made = await send(gateway, '/v1/auth/signup', { body: { email: `${name}@b\u00fccher.example`, password } })
    assert.equal(made.status, 201, made.text)
    assert.equal(made.body.user.email, `${name}@xn--bcher-kva.example`)
    const domains = ['b\u00fccher.example', 'bu\u0308cher.example', 'xn--bcher-kva.example', 'B\u00dcCHER.Example']
    for (const domain of domains) {
      const again = await send(gateway, '/v1/auth/signup', { body: { email: `${name}@${domain}`, password } })
      assert.deepEqual([again.status, again.body.code], [400, 'EMAIL_IN_USE'])
      const login = await logIn(`${name}@${domain}`, password.normalize('NFD'))
      assert.equal(login.status, 200, login.text)
    }
    for (const email of ['j\u00f6rg@example.com', 'a@\u00fc/b.example', 'a@\u00fc%2f.example', 'a@\u00fc b.example'])
      assert.equal((await send(gateway, '/v1/auth/signup', { body: { email, password } })).status, 400, email)
    const { token } = made.body
    const team = await send(gateway, '/v1/teams', { token, body: { name: 'Cafe\u0301' } })
    assert.equal(team.body.team.name, 'Caf\u00e9')
    const long = await send(gateway, '/v1/teams', { token, body: { name: 'e\u0301'.repeat(100) } })
    assert.equal(long.status, 201, 'characters are counted in the form in which they are kept')
    assert.equal((await send(gateway, '/v1/keys', { token, body: { label: 'Cafe\u0301' } })).status, 201)
    const { keys: listed } = (await send(gateway, '/v1/keys', { token })).body
    assert.deepEqual(
      listed.map(({ label }: { label: string }) => label),
      ['Caf\u00e9'],
    )
  })

  it('accounts keep their sessions when the secret is rotated, until the old secret is taken away', async () => {
    const current = gateway.environment.JWT_SECRET ?? ''
    const next = Buffer.from(randomUUID() + randomUUID()).toString('base64url')
    const rotated = await gateway.startWeb({ JWT_SECRET: `${next},${current}` })
    assert.equal((await send(gateway, '/v1/me', { token: account.token, url: rotated })).status, 200)
    const fresh = (await logIn(account.email, account.password, rotated)).body.token
    const without = await gateway.startWeb({ JWT_SECRET: next })
    assert.equal((await send(gateway, '/v1/me', { token: fresh, url: without })).status, 200)
    assert.equal((await send(gateway, '/v1/me', { token: account.token, url: without })).status, 401)
  })

  it('sign-ups by minute and hour, and failed log-ins, are throttled by client address, and never lock the owner of an account out', async () => {
    const url = await gateway.startWeb({
      SIGNUP_PER_MINUTE: '3',
      SIGNUP_PER_HOUR: '2',
      LOGIN_FAILURES_PER_MINUTE: '6',
      TRUST_PROXY: '127.0.0.1',
    })
    // Before it has Redis, a node counts nothing.
    await until(async () => (await fetch(`${url}/readyz`)).status === 200)
    const from = (address: string) => ({ 'x-forwarded-for': address })
    const failures = await Promise.all(
      // Some proxies write the port of each connection too.
      Array.from({ length: 8 }, (_, index) =>
        send(gateway, '/v1/auth/login', {
          body: { email: `${randomUUID()}@example.com`, password: 'a wrong one' },
          url,
          headers: from(index === 0 ? '203.0.113.7' : `203.0.113.7:${4711 + index}`),
        }),
      ),
    )
    assert.deepEqual(failures.map(({ status }) => status).sort(), [...Array(6).fill(401), ...Array(2).fill(429)])
    const refused = failures.find(({ status }) => status === 429)
    assert.equal(refused?.body.code, 'LOGIN_THROTTLED')
    assert.ok(Number(refused?.headers.get('retry-after')) > 0)
    const right = { email: account.email, password: account.password }
    for (let round = 0; round < 4; round += 1) {
      const owner = await send(gateway, '/v1/auth/login', { body: right, url, headers: from('203.0.113.8') })
      assert.equal(owner.status, 200)
    }

    // If a client sends wrong passwords for an account, it has to wait longer each time. Other
    // clients of its network do not.
    const neighbour = await signUp(gateway)
    /** As if the neighbour had done it so often in this minute. Each time would cost a hash. */
    const count = async (name: string, times: number) => {
      const redis = openOperatorRedis(gateway)
      const done = Array.from({ length: times }, (_, index) => [Date.now(), `${name} ${index}`]).flat()
      await redis.zadd(keys.throttle(name, neighbour.id), ...done)
      redis.disconnect()
    }
    const tryAt = async (body: object, address = '203.0.113.9') =>
      await send(gateway, '/v1/auth/login', { body, url, headers: from(address) })
    const wrong = { email: account.email.toUpperCase(), password: 'a wrong one' }
    const guesses = []
    for (let guess = 0; guess < 7; guess += 1) guesses.push(await tryAt(wrong))
    assert.deepEqual(
      guesses.map(({ status }) => status),
      [401, 401, 401, 401, 401, 429, 429],
    )
    assert.ok(Number(guesses.at(-1)?.headers.get('retry-after')) >= 1)
    assert.equal((await tryAt(right)).status, 429)
    assert.equal((await tryAt(right, '203.0.113.10')).status, 200)
    // Ten good log-ins to an account in a minute, even if others guess its password meanwhile.
    const good = { email: neighbour.email, password: neighbour.password }
    assert.equal((await tryAt({ ...good, password: 'a wrong one' }, '203.0.113.11')).status, 401)
    await count('login-account', 9)
    assert.equal((await tryAt(good, '203.0.113.14')).status, 200)
    const surplus = await tryAt(good, '203.0.113.12')
    assert.deepEqual([surplus.status, surplus.body.code], [429, 'LOGIN_THROTTLED'])
    assert.ok(Number(surplus.headers.get('retry-after')) > 30)
    assert.equal((await tryAt(right, '203.0.113.12')).status, 200)
    // The same number of changes of its password. They are counted apart, so that a flood of
    // log-ins does not block a change.
    const change = () =>
      send(gateway, '/v1/auth/password', {
        url,
        token: neighbour.token,
        body: { currentPassword: neighbour.password, newPassword: neighbour.password },
      })
    assert.equal((await change()).status, 204)
    await count('password-change', 9)
    const changed = await change()
    assert.deepEqual([changed.status, changed.body.code], [429, 'LOGIN_THROTTLED'])

    const statuses: number[] = []
    for (let index = 0; index < 4; index += 1) {
      const body = { email: `${randomUUID()}@example.com`, password: 'long enough' }
      const headers = from(`fd00:0:1:1::${index + 1}`)
      statuses.push((await send(gateway, '/v1/auth/signup', { body, url, headers })).status)
    }
    assert.deepEqual(statuses, [201, 201, 201, 429])

    // By the hour for a public network, and not at all if the operator says so.
    const signUpFrom = async (address: string, node = url) => {
      const body = { email: `${randomUUID()}@example.com`, password: 'long enough' }
      return await send(gateway, '/v1/auth/signup', { body, url: node, headers: { 'x-forwarded-for': address } })
    }
    // One /56, all of which belongs to one subscriber.
    const public56 = ['2001:db8:2:100::1', '[2001:db8:2:1ff::1]:4711', '2001:db8:2:150::1', '2001:db8:2:200::1']
    const answers = []
    for (const address of public56) answers.push(await signUpFrom(address))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201, 429, 201],
    )
    assert.ok(Number(answers[2]?.headers.get('retry-after')) > 3_500)
    for (let time = 0; time < 3; time += 1) assert.equal((await signUpFrom('192.168.1.7')).status, 201)
    const unnamed = []
    for (const name of ['unknown', '_hidden', '_SEVKISEK']) unnamed.push((await signUpFrom(name)).status)
    assert.deepEqual(unnamed, [201, 201, 429], 'clients that the proxy does not name are one')

    const closed = await gateway.startWeb({ SIGNUP: 'closed' })
    const { status, body } = await signUpFrom('192.168.1.7', closed)
    assert.deepEqual([status, body.code], [403, 'FORBIDDEN'])
    assert.deepEqual([body.message, body.hint], ['Sign-up is closed.', 'Ask the operator of this gateway to open it.'])
    // If sign-up is closed, the answer says so even if the body is wrong too.
    for (const wrong of [{ email: 'nobody', password: 'x' }, '{']) {
      const answer = await send(gateway, '/v1/auth/signup', { body: wrong, url: closed })
      assert.deepEqual([answer.status, answer.body.message], [403, 'Sign-up is closed.'])
    }
    const { token } = (await signUpFrom('192.168.1.8')).body
    const { team } = (await send(gateway, '/v1/teams', { url: closed, token, body: { name: 'Team' } })).body
    const stranger = { email: `${randomUUID()}@example.com` }
    const path = `/v1/teams/${team.id}/members`
    assert.match(
      (await send(gateway, path, { url: closed, token, body: stranger })).body.hint,
      /open sign-up for the person/,
    )
    assert.match((await send(gateway, path, { url, token, body: stranger })).body.hint, /^Ask the person to sign up/)
  })
})

describe('API keys', () => {
  const call = async (key: string, url?: string) =>
    (await send(gateway, EXAMPLE_CALL, { key, ...(url ? { url } : {}) })).status

  it('API keys are shown once, and listings contain everything except the key itself', async () => {
    const person = await signUp(gateway)
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const body = { label: 'Ünïcode label', environment: 'test', expiresAt }
    const made = await send(gateway, '/v1/keys', { token: person.token, body })
    assert.equal(made.status, 201)
    assert.match(made.body.key, /^agw_test_[0-9A-Za-z]{49}$/)
    assert.equal(made.headers.get('cache-control'), 'no-store')
    const list = await send(gateway, '/v1/keys', { token: person.token })
    assert.deepEqual(
      list.body.keys.find((key: { id: string }) => key.id === made.body.id),
      {
        id: made.body.id,
        keyPrefix: 'agw_test_',
        environment: 'test',
        label: 'Ünïcode label',
        createdAt: list.body.keys[0].createdAt,
        lastFour: made.body.key.slice(-4),
        lastUsedAt: null,
        expiresAt,
        mayWrite: false,
        apis: null,
        addresses: null,
        limits: { perMinute: null, perMonth: null, inFlight: null },
        teamId: null,
        replacedBy: null,
        createdBy: person.id,
      },
    )
    for (const key of [person.live, person.test, made.body.key]) assert.ok(!list.text.includes(key))
  })

  it('API keys are not created from a body with an unknown member, because the member may be meant to restrict the key', async () => {
    const person = await signUp(gateway)
    const listed = async () => (await send(gateway, '/v1/keys', { token: person.token })).body.keys.length
    const before = await listed()
    for (const [body, param, message] of [
      [
        { mode: 'test' },
        'mode',
        /^Member mode is not known; the members are label, environment, teamId, expiresAt, apis, addresses, limits, mayWrite\.$/,
      ],
      [
        { expires_at: '2020-01-01T00:00:00Z' },
        'expires_at',
        /^Member expires_at is not known; did you mean expiresAt\?$/,
      ],
    ] as const) {
      const refused = await send(gateway, '/v1/keys', { token: person.token, body })
      assert.deepEqual([refused.status, refused.body.code], [400, 'VALIDATION_ERROR'])
      assert.match(refused.body.message, message)
      assert.match(refused.body.hint, new RegExp(`param=${param}`))
    }
    assert.equal(await listed(), before)
  })

  it('accounts accept unknown members of a body if the members could not restrict what is created', async () => {
    const { token, password } = await signUp(gateway)
    const team = { name: 'A team', description: 'of no use here' }
    assert.equal((await send(gateway, '/v1/teams', { token, body: team })).status, 201)
    const change = { currentPassword: password, newPassword: 'another one 1', confirmPassword: 'another one 1' }
    assert.equal((await send(gateway, '/v1/auth/password', { token, body: change })).status, 204)
  })

  it('API keys are refused from the request after the revocation on, on the other node too; twice is 404', async () => {
    const [first = '', second = ''] = gateway.urls
    for (let round = 0; round < 5; round += 1) {
      const { key, id } = await createKey(gateway, account.token, 'test')
      assert.deepEqual([await call(key, first), await call(key, second)], [200, 200])
      const revoke = () => send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: account.token, url: first })
      assert.equal((await revoke()).status, 204)
      // This holds even if the call would be refused for another reason.
      const invalid = await send(gateway, '/v1/call/weather/current', { key, url: second })
      assert.deepEqual([invalid.status, await call(key, second), await call(key, first)], [401, 401, 401])
      assert.equal((await revoke()).body.code, 'KEY_NOT_FOUND')
    }
  })

  it('API keys are refused once they expire, and cannot be made expired', async () => {
    const expiresAt = new Date(Date.now() + 1_500).toISOString()
    const { body } = await send(gateway, '/v1/keys', { token: account.token, body: { environment: 'test', expiresAt } })
    assert.equal(await call(body.key), 200)
    await until(async () => (await call(body.key)) === 401)
    assert.ok(Date.now() >= Date.parse(expiresAt))
    // RFC 3339 has leap seconds. Offsets can move a time out of the years that it can write.
    const leap = { expiresAt: '2099-12-31T18:59:60-05:00' }
    const made = await send(gateway, '/v1/keys', { token: account.token, body: { environment: 'test', ...leap } })
    const { keys } = (await send(gateway, '/v1/keys', { token: account.token })).body
    const { expiresAt: shown } = keys.find(({ id }: { id: string }) => id === made.body.id)
    assert.equal(shown, '2099-12-31T23:59:59.000Z')
    const times = [
      '2099-12-31T24:00:00Z',
      '2099-12-31T12:00:60Z',
      '2099-01-01T00:00:00+24:00',
      '9999-12-31T23:59:59-01:00',
    ]
    for (const bad of [new Date(Date.now() - 1_000).toISOString(), '2030-02-30T00:00:00Z', 'tomorrow', 5, ...times]) {
      const answer = await send(gateway, '/v1/keys', { token: account.token, body: { expiresAt: bad } })
      assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_ERROR'], String(bad))
    }
  })

  it('API keys expire in time on a node whose machine has a slow clock', async (t) => {
    const expiresAt = new Date(Date.now() + 1_500).toISOString()
    const { body } = await send(gateway, '/v1/keys', { token: account.token, body: { environment: 'test', expiresAt } })
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 })
    assert.equal(await call(body.key), 200)
    await until(async () => (await call(body.key)) === 401)
    const make = (time: string) => send(gateway, '/v1/keys', { token: account.token, body: { expiresAt: time } })
    assert.equal((await make(expiresAt)).status, 400)
    const made = await make(new Date(Date.parse(expiresAt) + 600_000).toISOString())
    const path = `/v1/keys/${made.body.id}/rotate`
    const { body: rotated } = await send(gateway, path, { method: 'POST', token: account.token })
    const { keys: listed } = (await send(gateway, '/v1/keys', { token: account.token })).body
    const { expiresAt: shown } = listed.find(({ id }: { id: string }) => id === rotated.id)
    assert.ok(Date.parse(shown) > Date.parse(expiresAt) + 300_000, shown)
  })

  it('an account has at most 50 live API keys, exactly, team keys included; revoking makes room', async () => {
    const person = await signUp(gateway)
    const { body } = await send(gateway, '/v1/teams', { token: person.token, body: { name: 'T' } })
    const make = async (index: number, repeatsMax = 20): Promise<Answer> => {
      const answer = await send(gateway, '/v1/keys', {
        token: person.token,
        body: index % 2 ? {} : { teamId: body.team.id },
        url: gateway.urls[index % 2] ?? '',
      })
      // They wait for each other in Postgres. On a busy machine the wait is longer than a statement
      // may take.
      const isRepeated = answer.body.code === 'DEPENDENCY_UNAVAILABLE' && repeatsMax > 0
      return isRepeated ? await make(index, repeatsMax - 1) : answer
    }
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => make(index)))
    assert.equal(answers.filter(({ status }) => status === 201).length, 48)
    const refused = answers.filter(({ status }) => status !== 201)
    for (const { status, body, text } of refused)
      assert.deepEqual([status, body.code], [409, 'KEY_LIMIT_REACHED'], text)
    // There is another limit on the keys that admins of its teams make, and the answer says so.
    const [owner, admin] = [await signUp(gateway), await signUp(gateway)]
    const team = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'U' } })).body.team.id
    const adding = { email: admin.email, role: 'admin' }
    await send(gateway, `/v1/teams/${team}/members`, { token: owner.token, body: adding })
    const ofAdmin = async () => await send(gateway, '/v1/keys', { token: admin.token, body: { teamId: team } })
    for (let count = 0; count < 25; count += 1) assert.equal((await ofAdmin()).status, 201)
    const { status, body: full } = await ofAdmin()
    assert.deepEqual([status, full.code], [409, 'KEY_LIMIT_REACHED'])
    assert.match(`${full.message} ${full.hint}`, /made by other members.*limit=25/)
    assert.equal((await send(gateway, '/v1/keys', { token: owner.token, body: { teamId: team } })).status, 201)
    const made = answers.find(({ status }) => status === 201)
    await send(gateway, `/v1/keys/${made?.body.id}`, { method: 'DELETE', token: person.token })
    assert.equal((await send(gateway, '/v1/keys', { token: person.token, body: {} })).status, 201)
  })

  it('API keys can be created 200 times a day, however many are revoked, and failed attempts do not count', async () => {
    const { id, token } = await signUp(gateway)
    const make = async (body: object = {}) => await send(gateway, '/v1/keys', { token, body })
    const makeAndRevoke = async () => {
      const made = await make()
      assert.equal(made.status, 201)
      await send(gateway, `/v1/keys/${made.body.id}`, { method: 'DELETE', token })
    }
    // As if the account had made all but two.
    const redis = openOperatorRedis(gateway)
    const throttle = keys.throttle('credential', id)
    for (let made = await redis.zcard(throttle); made < 198; made += 1)
      await redis.zadd(throttle, Date.now(), randomUUID())
    redis.disconnect()
    for (let tries = 0; tries < 3; tries += 1) assert.equal((await make({ teamId: randomUUID() })).status, 404)
    await makeAndRevoke()
    await makeAndRevoke()
    const refused = await make()
    assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMIT_EXCEEDED'], refused.text)
    const retryAfter = Number(refused.headers.get('retry-after'))
    assert.ok(retryAfter > 80_000 && retryAfter <= 86_400, String(retryAfter))
    await signUp(gateway)
  })

  it("API keys of a team are the team's own, count against its owner's plan and outlive the admin who made them", async () => {
    const owner = await signUp(gateway, 'pro')
    const admin = await signUp(gateway)
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Team' } })).body
    const body = { email: admin.email, role: 'admin' }
    assert.equal((await send(gateway, `/v1/teams/${team.id}/members`, { token: owner.token, body })).status, 201)
    const made = await send(gateway, '/v1/keys', {
      token: admin.token,
      body: { teamId: team.id, environment: 'test', label: 'ci' },
    })
    const view = await send(gateway, `/v1/teams/${team.id}`, { token: admin.token })
    assert.equal(view.body.yourRole, 'admin')
    assert.deepEqual(
      view.body.keys.map(({ id, teamId }: { id: string; teamId: string }) => [id, teamId]),
      [[made.body.id, team.id]],
    )
    const answer = await send(gateway, EXAMPLE_CALL, { key: made.body.key })
    assert.equal(answer.headers.get('x-ratelimit-limit'), '100')
    await send(gateway, `/v1/teams/${team.id}/members/${admin.id}`, { method: 'DELETE', token: owner.token })
    assert.equal(await call(made.body.key), 200)
    assert.equal(
      (await send(gateway, `/v1/keys/${made.body.id}`, { method: 'DELETE', token: admin.token })).status,
      404,
    )
    assert.equal(
      (await send(gateway, `/v1/keys/${made.body.id}`, { method: 'DELETE', token: owner.token })).status,
      204,
    )
    assert.equal(await call(made.body.key), 401)
  })

  it('API keys of the wrong form or checksum are refused, and never make way for another credential', async () => {
    const { key } = await createKey(gateway, account.token, 'test')
    const last = key.endsWith('A') ? 'B' : 'A'
    for (const bad of [key.slice(0, -1) + last, key.slice(0, -1), `${key}A`, key.toUpperCase(), 'agw_test_']) {
      const answer = await send(gateway, EXAMPLE_CALL, { key: bad, token: account.token })
      assert.deepEqual([answer.status, answer.body.error.code], [401, 'INVALID_API_KEY'], bad)
    }
    assert.equal((await send(gateway, `${EXAMPLE_CALL}&key=${key}`)).status, 401)
    for (const scheme of ['bearer', 'Bearer  ']) {
      const headers = { authorization: `${scheme} ${key}` }
      assert.equal((await send(gateway, EXAMPLE_CALL, { headers })).status, 200, scheme)
    }
    const claims = { userId: account.id, sessionId: randomUUID() }
    const token = await signSessionToken(
      loadConfig(gateway.environment).secrets.jwt,
      claims,
      new Date(Date.now() + 1_000),
    )
    assert.equal((await send(gateway, EXAMPLE_CALL, { token })).status, 401)
  })
  it('API keys and tokens in the wrong place are refused with a hint that says where each belongs', async () => {
    const { key } = await createKey(gateway, account.token, 'test')
    const { token } = account
    const logIn = /^Log in with POST \/v1\/auth\/login and send its token as Authorization: Bearer\./
    const cases: [path: string, headers: Record<string, string>, code: string, hint: RegExp][] = [
      [EXAMPLE_CALL, { authorization: key }, 'INVALID_TOKEN', /^Send Authorization: Bearer </],
      [EXAMPLE_CALL, { authorization: `Basic ${btoa(`${key}:`)}` }, 'INVALID_TOKEN', /^Send Authorization: Bearer </],
      [EXAMPLE_CALL, { authorization: 'x'.repeat(43) }, 'INVALID_TOKEN', /^Send Authorization: Bearer </],
      [
        EXAMPLE_CALL,
        { authorization: `Bearer ${'x'.repeat(43)}` },
        'INVALID_TOKEN',
        /\/oauth\/token, or sign in again/,
      ],
      [EXAMPLE_CALL, { 'x-api-key': `Bearer ${key}` }, 'INVALID_API_KEY', /^Send the whole key and nothing else/],
      [EXAMPLE_CALL, { 'x-api-key': key.slice(0, -1) }, 'INVALID_API_KEY', /^Send the whole key and nothing else/],
      [EXAMPLE_CALL, { 'x-api-key': token }, 'INVALID_API_KEY', /^Send it as Authorization: Bearer/],
      ['/v1/keys', {}, 'AUTH_REQUIRED', logIn],
      ['/v1/keys', { 'x-api-key': key }, 'AUTH_REQUIRED', logIn],
      ['/v1/keys', { authorization: `Bearer ${key}` }, 'INVALID_TOKEN', logIn],
      ['/v1/keys', { authorization: `Bearer ${'x'.repeat(43)}` }, 'INVALID_TOKEN', logIn],
    ]
    for (const [path, headers, code, hint] of cases) {
      const { status, body } = await send(gateway, path, { headers })
      const error = typeof body.error === 'object' ? body.error : body
      assert.deepEqual([status, error.code], [401, code], `${path} ${Object.keys(headers)}`)
      assert.match(error.hint, hint)
      assert.ok(!JSON.stringify(body).includes(key.slice(20)), 'no answer repeats a credential')
    }
  })
})
