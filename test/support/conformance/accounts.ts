import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createKey, signUp } from '../client.ts'
import { assertFailure, isDateTime, NOBODY, refuses, type Statement, UUID } from './world.ts'

const credentials = (password = 'a long password') => ({ email: `${randomUUID()}@example.com`, password })
const partsOf = (token: string) =>
  token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))

/** Statements about accounts, keys, credentials and billing. */
export const ACCOUNT_STATEMENTS: Statement[] = [
  {
    says: 'POST /v1/auth/signup answers 201 with token and user {id, email}',
    holds: async ({ send }) => {
      const given = credentials()
      const { status, body } = await send('/v1/auth/signup', { body: given })
      assert.equal(status, 201)
      assert.match(body.user.id, UUID)
      assert.deepEqual([typeof body.token, body.user.email], ['string', given.email])
    },
  },
  refuses(
    'POST /v1/auth/signup without an email is 400',
    () => ['/v1/auth/signup', { body: { password: 'a long password' } }],
    400,
    'VALIDATION_ERROR',
  ),
  refuses(
    'POST /v1/auth/signup with what is no email is 400',
    () => ['/v1/auth/signup', { body: { email: 'nobody', password: 'a long password' } }],
    400,
    'VALIDATION_ERROR',
  ),
  refuses(
    'a password of 7 characters is refused',
    () => ['/v1/auth/signup', { body: credentials('1234567') }],
    400,
    'VALIDATION_ERROR',
  ),
  refuses(
    'a password of 257 characters is refused',
    () => ['/v1/auth/signup', { body: credentials('x'.repeat(257)) }],
    400,
    'VALIDATION_ERROR',
  ),
  {
    says: 'a password of 8 code points is accepted, whatever their length in bytes',
    holds: async ({ send }) =>
      assert.equal((await send('/v1/auth/signup', { body: credentials('ключ🔑🔑🔑🔑') })).status, 201),
  },
  refuses(
    'a second account with the same email is refused as EMAIL_IN_USE',
    ({ free }) => ['/v1/auth/signup', { body: { email: free.email, password: 'a long password' } }],
    400,
    'EMAIL_IN_USE',
  ),
  {
    says: 'POST /v1/auth/login answers 200 with a token that opens /v1/me',
    holds: async ({ send, free }) => {
      const { status, body } = await send('/v1/auth/login', { body: { email: free.email, password: free.password } })
      assert.equal(status, 200)
      assert.equal((await send('/v1/me', { token: body.token })).status, 200)
    },
  },
  {
    says: 'a wrong password and an unknown address get the same answer, 401',
    holds: async ({ send, free }) => {
      const wrong = await send('/v1/auth/login', { body: { email: free.email, password: 'another password' } })
      const unknown = await send('/v1/auth/login', { body: credentials() })
      assertFailure(wrong, 401, 'INVALID_CREDENTIALS')
      assert.deepEqual(wrong.body, unknown.body)
    },
  },
  {
    says: 'a session is a JWT with HS256, kid, iss, aud, sub, sid and typ, for 24 hours, without claims for role and tier',
    holds: async ({ free }) => {
      const [header, claims] = partsOf(free.token)
      assert.deepEqual([header.alg, typeof header.kid], ['HS256', 'string'])
      assert.equal(claims.exp - claims.iat, 86_400)
      assert.equal(claims.sub, free.id)
      for (const name of ['iss', 'aud', 'sid', 'typ']) assert.ok(name in { ...header, ...claims }, name)
      for (const name of ['tier', 'role', 'plan', 'email']) assert.ok(!(name in claims), name)
    },
  },
  {
    says: 'GET /v1/me answers id, email, tier and termsAcceptedAt',
    holds: async ({ send, free }) => {
      const { status, body } = await send('/v1/me', { token: free.token })
      assert.deepEqual([status, body.id, body.email, body.tier], [200, free.id, free.email, 'developer'])
      assert.ok(body.termsAcceptedAt === null || isDateTime(body.termsAcceptedAt))
    },
  },
  refuses('GET /v1/me without a credential is 401', () => ['/v1/me'], 401, 'AUTH_REQUIRED'),
  refuses('GET /v1/me with a made-up token is 401', () => ['/v1/me', { token: 'a.b.c' }], 401, 'INVALID_TOKEN'),
  {
    says: 'a 401 names the scheme of the credential that the route needs',
    holds: async ({ send }) => assert.match((await send('/v1/me')).headers.get('www-authenticate') ?? '', /^Bearer /),
  },
  {
    says: 'POST /v1/auth/logout is answered 204, and the session is refused at once',
    holds: async ({ send, free }) => {
      const { body } = await send('/v1/auth/login', { body: { email: free.email, password: free.password } })
      assert.equal((await send('/v1/auth/logout', { method: 'POST', token: body.token })).status, 204)
      assert.equal((await send('/v1/me', { token: body.token })).status, 401)
    },
  },
  {
    says: 'POST /v1/auth/password changes the password and ends all other sessions',
    holds: async ({ send, gateway }) => {
      const account = await signUp(gateway)
      const other = await send('/v1/auth/login', { body: { email: account.email, password: account.password } })
      const body = { currentPassword: account.password, newPassword: 'quite another password' }
      assert.equal((await send('/v1/auth/password', { token: account.token, body })).status, 204)
      assert.equal((await send('/v1/me', { token: account.token })).status, 200)
      assert.equal((await send('/v1/me', { token: other.body.token })).status, 401)
      assertFailure(await send('/v1/auth/login', { body: account }), 401, 'INVALID_CREDENTIALS')
    },
  },
  {
    says: 'POST /v1/keys without a body makes a live key: key, id and keyPrefix',
    holds: async ({ send, free }) => {
      const { status, body } = await send('/v1/keys', { method: 'POST', token: free.token })
      assert.equal(status, 201)
      assert.match(body.id, UUID)
      assert.equal(body.keyPrefix, 'agw_live_')
      assert.match(body.key, /^agw_live_[0-9A-Za-z]{49}$/)
    },
  },
  {
    says: 'a test key has the prefix of test keys',
    holds: async ({ gateway, free }) => {
      const { key, keyPrefix } = await createKey(gateway, free.token, 'test')
      assert.equal(keyPrefix, 'agw_test_')
      assert.match(key, /^agw_test_[0-9A-Za-z]{49}$/)
    },
  },
  {
    says: 'a label of a key may have 255 characters, and a label of 256 is answered 400',
    holds: async ({ send, free }) => {
      const make = (length: number) => send('/v1/keys', { token: free.token, body: { label: 'x'.repeat(length) } })
      assert.equal((await make(255)).status, 201)
      assertFailure(await make(256), 400, 'VALIDATION_ERROR')
    },
  },
  refuses(
    'a key of another environment than live and test is 400',
    ({ free }) => ['/v1/keys', { token: free.token, body: { environment: 'staging' } }],
    400,
    'VALIDATION_ERROR',
  ),
  {
    says: 'GET /v1/keys lists id, keyPrefix, environment, label and createdAt, and never a full key',
    holds: async ({ send, free }) => {
      const { body, text } = await send('/v1/keys', { token: free.token })
      assert.ok(body.keys.length >= 2)
      for (const key of body.keys) {
        assert.match(key.id, UUID)
        assert.ok(['live', 'test'].includes(key.environment) && key.keyPrefix === `agw_${key.environment}_`)
        assert.ok(isDateTime(key.createdAt) && 'label' in key && key.lastFour.length === 4)
      }
      assert.doesNotMatch(text, /agw_(live|test)_[0-9A-Za-z]/)
    },
  },
  {
    says: 'DELETE /v1/keys/{id} is answered 204 without a body, and 404 the second time',
    holds: async ({ send, gateway, free }) => {
      const { id } = await createKey(gateway, free.token)
      const remove = () => send(`/v1/keys/${id}`, { method: 'DELETE', token: free.token })
      const { status, text } = await remove()
      assert.deepEqual([status, text], [204, ''])
      assertFailure(await remove(), 404, 'KEY_NOT_FOUND')
    },
  },
  {
    says: 'a revoked key is refused from the next request on',
    holds: async ({ send, gateway, free }) => {
      const { id, key } = await createKey(gateway, free.token, 'test')
      assert.equal((await send('/v1/call/dog-images/random', { key })).status, 200)
      await send(`/v1/keys/${id}`, { method: 'DELETE', token: free.token })
      assertFailure(await send('/v1/call/dog-images/random', { key }), 401, 'INVALID_API_KEY')
    },
  },
  {
    says: 'DELETE /v1/keys/{id} is answered 404 for an unknown id, a malformed id, and a key of another account',
    holds: async ({ send, gateway, free, elite }) => {
      const { id } = await createKey(gateway, elite.token)
      for (const name of [NOBODY, 'no-uuid', id]) {
        assertFailure(await send(`/v1/keys/${name}`, { method: 'DELETE', token: free.token }), 404, 'KEY_NOT_FOUND')
      }
    },
  },
  refuses('an API key opens no account route', ({ free }) => ['/v1/keys', { token: free.live }], 401, 'INVALID_TOKEN'),
  {
    says: 'GET /v1/billing/status shows a new account developer, Free, 10 a minute, 1 000 a month and 5 in flight',
    holds: async ({ send, gateway }) => {
      const { token } = await signUp(gateway)
      const { tier, plan, limits, usage } = (await send('/v1/billing/status', { token })).body
      assert.deepEqual([tier, plan], ['developer', 'Free'])
      assert.deepEqual(limits, { perMinute: 10, perMonth: 1_000, inFlight: 5 })
      assert.deepEqual([usage.used, usage.remaining, isDateTime(usage.resetsAt)], [0, 1_000, true])
      assert.match(usage.month, /^\d{4}-\d{2}$/)
    },
  },
  {
    says: 'GET /v1/billing/status shows a business account Elite, 500 a minute, 1 000 000 a month and 100 in flight',
    holds: async ({ send, elite }) => {
      const { tier, plan, limits } = (await send('/v1/billing/status', { token: elite.token })).body
      assert.deepEqual([tier, plan], ['business', 'Elite'])
      assert.deepEqual(limits, { perMinute: 500, perMonth: 1_000_000, inFlight: 100 })
    },
  },
  {
    says: 'every account route needs a session',
    holds: async ({ send }) => {
      const routes = ['GET /v1/me', 'GET /v1/keys', 'POST /v1/keys', `DELETE /v1/keys/${NOBODY}`, 'GET /v1/teams',
        'POST /v1/teams', `GET /v1/teams/${NOBODY}`, `PUT /v1/teams/${NOBODY}`, `POST /v1/teams/${NOBODY}/members`,
        `PUT /v1/teams/${NOBODY}/members/${NOBODY}`, `DELETE /v1/teams/${NOBODY}/members/${NOBODY}`,
        'GET /v1/billing/status', 'GET /v1/usage', 'GET /v1/provider-keys'] // biome-ignore format: a list
      for (const route of routes) {
        const [method = '', path = ''] = route.split(' ')
        assertFailure(await send(path, { method }), 401, 'AUTH_REQUIRED')
      }
    },
  },
]
