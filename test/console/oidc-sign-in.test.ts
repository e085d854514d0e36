import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { InjectOptions } from 'fastify'
import { ConfigError, loadConfig } from '../../src/config.ts'
import { insertUser } from '../../src/db/users.ts'
import { listRoutes } from '../../src/http/server/method-not-allowed.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { type OidcIssuer, startOidcIssuer } from '../support/oidc-issuer.ts'

const HOST = 'console.example:3001'
const SAME_SITE = { 'sec-fetch-site': 'same-origin' }

const PROXY_SECRET = randomBytes(32).toString('base64url')

let issuer: OidcIssuer
let console_: TestConsole
before(async () => {
  issuer = await startOidcIssuer()
  console_ = await openTestConsole({
    ...{ OIDC_ISSUER: issuer.url, OIDC_CLIENT_ID: issuer.clientId, OIDC_CLIENT_SECRET: issuer.clientSecret },
    ...{ OIDC_OPERATOR_GROUPS: 'gateway-operators', OIDC_VIEWER_GROUPS: 'staff, support' },
    ...{ TRUST_PROXY: '127.0.0.1', TRUSTED_USER_HEADER: 'X-Forwarded-User' },
    ...{ TRUSTED_GROUPS_HEADER: 'X-Forwarded-Groups', TRUSTED_HEADER_SECRET: PROXY_SECRET },
    LOGIN_FAILURES_PER_MINUTE: '0',
  })
})
after(async () => {
  await console_?.stop()
  await issuer.close()
})
beforeEach(() => {
  Object.assign(issuer, { person: {}, wrong: {}, hasWrongKey: false, isTerse: false })
})

const ask = (options: InjectOptions) => console_.app.inject({ ...options, headers: { host: HOST, ...options.headers } })

const cookiesOf = ({ headers }: { headers: Record<string, unknown> }): string =>
  [headers['set-cookie']]
    .flat()
    .map((cookie) => String(cookie).split(';')[0])
    .filter((cookie) => !cookie?.endsWith('='))
    .join('; ')

/**
 * Goes to the provider and back.
 *
 * @returns the answer of the console, and the query with which the person returned
 */
async function signIn({ query: givenQuery, cookie }: { query?: string; cookie?: string } = {}) {
  const begun = await ask({ url: '/login/oidc', ...(cookie === undefined ? {} : { headers: { cookie } }) })
  assert.equal(begun.statusCode, 303)
  const atProvider = await fetch(String(begun.headers.location), { redirect: 'manual' })
  const back = new URL(atProvider.headers.get('location') ?? '')
  assert.equal(`${back.origin}${back.pathname}`, `http://${HOST}/login/callback`)
  const query = givenQuery ?? back.search
  const answer = await ask({ url: `/login/callback${query}`, headers: { cookie: cookie ?? cookiesOf(begun) } })
  return { answer, query, pending: cookiesOf(begun) }
}

const ADA = { sub: '248289761001', email: 'ada@example.org', email_verified: true, groups: ['gateway-operators'] }
const EVE = { sub: '2', preferred_username: 'eve', email: 'ada@example.org', email_verified: false, groups: ['staff'] }

const CHANGE: InjectOptions = {
  method: 'PATCH',
  url: '/v1/operator/upstreams/weather',
  payload: { tierRequired: 'pro' },
}

const lastAudit = async () => {
  const { audit = [], records = audit } = (await ask({ url: '/v1/operator/audit', headers: console_.bearer })).json()
  return records[0] as { actor: string; action: string; after: Record<string, unknown> }
}

describe('a sign-in to the console by an OIDC provider', () => {
  it('a sign-in to the console by an OIDC provider opens it under the name that the provider proves, which the audit log has', async () => {
    issuer.person = ADA
    const { answer } = await signIn()
    assert.equal(answer.statusCode, 200, answer.body)
    assert.match(answer.body, /http-equiv="refresh" content="0;url=\/"/)
    const login = await lastAudit()
    assert.equal(login.actor, 'ada@example.org (oidc, 127.0.0.1)')
    assert.equal(login.action, 'console.login')
    assert.equal(login.after.subject, ADA.sub)
    const cookie = cookiesOf(answer)
    assert.equal((await ask({ url: '/', headers: { cookie } })).statusCode, 200)
    const headers = { cookie, ...SAME_SITE, 'x-operator': 'somebody-else' }
    assert.equal((await ask({ ...CHANGE, headers })).statusCode, 200)
    const change = await lastAudit()
    assert.equal(change.actor, 'ada@example.org (oidc, 127.0.0.1)')
    // Another process also knows who the person is.
    const other = await console_.another()
    const page = await other.app.inject({ url: '/', headers: { cookie } })
    await other.close()
    assert.equal(page.statusCode, 200)
    const cookies = [answer.headers['set-cookie']].flat().map(String)
    assert.match(cookies.find((each) => each.startsWith('agw_console=')) ?? '', /HttpOnly; SameSite=Strict/)
  })

  it('a sign-in to the console by an OIDC provider takes groups and address from the user info if the ID token lacks them', async () => {
    Object.assign(issuer, { person: ADA, isTerse: true })
    assert.equal((await signIn()).answer.statusCode, 200)
    assert.equal((await lastAudit()).actor, 'ada@example.org (oidc, 127.0.0.1)')
  })

  it('a sign-in to the console by an OIDC provider lets a viewer read everything and change nothing, and never uses an unproven address as name', async () => {
    let cookie = ''
    // User info of some providers has texts.
    for (const email_verified of ['false', false]) {
      issuer.person = { ...EVE, email_verified }
      cookie = cookiesOf((await signIn()).answer)
      assert.equal((await lastAudit()).actor, 'eve (oidc, 127.0.0.1)')
    }
    for (const url of ['/', '/queues', '/v1/operator/upstreams', '/v1/operator/audit', '/metrics'])
      assert.equal((await ask({ url, headers: { cookie } })).statusCode, 200, url)
    const changing = console_.app
      .printRoutes({ commonPrefix: false })
      .split('\n')
      .flatMap((line) => /(\/v1\/operator\/\S+) \(([A-Z, ]+)\)/.exec(line)?.slice(1, 3) ?? [])
    assert.ok(changing.length >= 0)
    const headers = { cookie, ...SAME_SITE }
    for (const [method, url] of [
      ['PATCH', '/v1/operator/upstreams/weather'],
      ['POST', '/v1/operator/upstreams/weather/pause'],
      ['POST', '/v1/operator/upstreams/weather/probe'],
      ['PATCH', '/v1/operator/users/6a5f2c9e-0000-4000-8000-000000000000'],
      ['POST', '/v1/operator/users/6a5f2c9e-0000-4000-8000-000000000000/new-password'],
      ['DELETE', '/v1/operator/anything'],
    ] as const) {
      const refused = await ask({ method, url, headers, payload: {} })
      assert.equal(refused.statusCode, 403, url)
      assert.equal(refused.json().code, 'FORBIDDEN')
      assert.match(refused.json().hint, /OIDC_OPERATOR_GROUPS/)
    }
    // A form in a browser gets a page.
    const form = { ...headers, accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' }
    const url = '/accounts/6a5f2c9e-0000-4000-8000-000000000000'
    const page = await ask({ method: 'POST', url, headers: form, payload: 'disabled=true' })
    assert.equal(page.statusCode, 403)
    assert.match(page.body, /<p>Members of OIDC_VIEWER_GROUPS may read the console, but may not change anything\.<\/p>/)
  })

  it('a sign-in to the console by an OIDC provider is refused to a person who is not in a group that may use the console', async () => {
    for (const groups of [['other'], [], 'gateway-operator', undefined, { 'gateway-operators': true }]) {
      issuer.person = { ...ADA, groups }
      const { answer } = await signIn()
      assert.equal(answer.statusCode, 403)
      assert.match(answer.body, /not in a group/)
      assert.doesNotMatch(cookiesOf(answer), /agw_console=/)
    }
    // Some providers send a single group as a text.
    issuer.person = { ...ADA, groups: 'staff' }
    assert.equal((await signIn()).answer.statusCode, 200)
  })

  it('a sign-in to the console by an OIDC provider is refused with another nonce, issuer, audience, key, or an end that is past', async () => {
    issuer.person = ADA
    const wrongs: Partial<OidcIssuer>[] = [
      { wrong: { nonce: 'another' } },
      { wrong: { nonce: undefined } },
      { wrong: { iss: 'https://another.example' } },
      { wrong: { aud: 'another-client' } },
      { hasWrongKey: true },
      { wrong: { exp: 1_000 } },
    ]
    for (const wrong of wrongs) {
      Object.assign(issuer, { wrong: {}, hasWrongKey: false }, wrong)
      const { answer } = await signIn()
      assert.equal(answer.statusCode, 401, JSON.stringify(wrong))
      assert.match(answer.body, /did not work/)
      assert.doesNotMatch(cookiesOf(answer), /agw_console=/)
    }
  })

  it('a sign-in to the console by an OIDC provider can end only once and only in the browser in which it began, and other browsers cause no request to the provider', async () => {
    issuer.person = ADA
    const before = issuer.exchanges
    // Somebody sends their own way back to a person who has not started a sign-in.
    assert.equal((await signIn({ cookie: '' })).answer.statusCode, 401)
    const { pending } = await signIn({ query: '?code=x&state=y' })
    assert.equal((await signIn({ cookie: pending })).answer.statusCode, 401)
    assert.equal((await signIn({ cookie: 'agw_console_sign_in=forged.AAAA' })).answer.statusCode, 401)
    assert.equal((await signIn({ query: '?error=access_denied&state=x' })).answer.statusCode, 401)
    assert.equal(issuer.exchanges, before)
    const first = await signIn()
    assert.equal(first.answer.statusCode, 200)
    const again = await ask({ url: `/login/callback${first.query}`, headers: { cookie: first.pending } })
    assert.equal(again.statusCode, 401)
  })

  it('a sign-in to the console by an OIDC provider goes on in each of two tabs of a browser', async () => {
    issuer.person = ADA
    const begin = async (cookie: string) => {
      const begun = await ask({ url: '/login/oidc', headers: { cookie } })
      const back = await fetch(String(begun.headers.location), { redirect: 'manual' })
      return { cookie: cookiesOf(begun), url: `/login/callback${new URL(back.headers.get('location') ?? '').search}` }
    }
    const first = await begin('')
    const second = await begin(first.cookie)
    const seen = issuer.exchanges
    // A HEAD request has no route, and the guard refuses it.
    assert.equal((await ask({ method: 'HEAD', url: first.url, headers: { cookie: second.cookie } })).statusCode, 401)
    assert.equal(issuer.exchanges, seen)
    const ended = await ask({ url: first.url, headers: { cookie: second.cookie } })
    assert.equal(ended.statusCode, 200)
    const left = cookiesOf(ended)
    assert.equal((await ask({ url: first.url, headers: { cookie: left } })).statusCode, 401)
    assert.equal((await ask({ url: second.url, headers: { cookie: left } })).statusCode, 200)
    // Whatever the number of tabs, the cookie is small enough for a browser.
    let cookie = ''
    for (let tab = 0; tab < 12; tab += 1) cookie = (await begin(cookie)).cookie
    assert.ok(cookie.length < 4_000, `${cookie.length} bytes`)
  })

  it('a sign-in to the console by an OIDC provider fails when the answer of the provider is too long', async () => {
    issuer.person = { ...ADA, groups: ['gateway-operators', 'x'.repeat(300_000)] }
    assert.equal((await signIn()).answer.statusCode, 401)
    issuer.person = { ...ADA, sub: 'x'.repeat(256) }
    assert.equal((await signIn()).answer.statusCode, 401)
  })

  it('a sign-in to the console by an OIDC provider works again a minute after the provider changed its keys', async (t) => {
    issuer.person = ADA
    assert.equal((await signIn()).answer.statusCode, 200)
    await issuer.rotateKey()
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 })
    const answers = [await signIn(), await signIn()].map(({ answer }) => answer.statusCode)
    assert.equal(answers[1], 200, answers.join())
  })

  it('a sign-in to the console by an OIDC provider ends by the clock of Redis, because another node may have begun it', async (t) => {
    issuer.person = ADA
    const begun = await ask({ url: '/login/oidc' })
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3_600_000 })
    const atProvider = await fetch(String(begun.headers.location), { redirect: 'manual' })
    const { search } = new URL(atProvider.headers.get('location') ?? '')
    const answer = await ask({ url: `/login/callback${search}`, headers: { cookie: cookiesOf(begun) } })
    assert.equal(answer.statusCode, 200)
  })
})

/** Every act of an operator: a body, and what the audit log calls it. */
const ACTS: Record<string, { body?: object; action: string }> = {
  'PATCH /v1/operator/upstreams/:slug': { body: { tierRequired: 'pro' }, action: 'upstream.update' },
  'POST /v1/operator/settings': { body: { upstreams: { weather: { tierRequired: null } } }, action: 'settings.apply' },
  'POST /v1/operator/upstreams/:slug/pause': { action: 'upstream.pause' },
  'POST /v1/operator/upstreams/:slug/resume': { action: 'upstream.resume' },
  'PATCH /v1/operator/users/:id': { body: { approved: true }, action: 'user.update' },
  'POST /v1/operator/users/:id/password': { action: 'user.password' },
  'POST /v1/operator/users/:id/reset-link': { action: 'user.reset-link' },
  'DELETE /v1/operator/keys/:id': { action: 'key.revoke' },
  'POST /accounts/:id/keys/:key/revoke': { action: 'key.revoke' },
  'POST /notice': { body: {}, action: 'notice.change' },
  'POST /accounts/:id': { body: { tier: 'pro' }, action: 'user.update' },
  'POST /v1/operator/upstreams/:slug/probe': { action: 'upstream.probe' },
}

it('every act of an operator in the console and its API is in the audit log under the name that the provider proves', async () => {
  issuer.person = ADA
  const cookie = cookiesOf((await signIn()).answer)
  const { db } = console_.context
  const userId = randomUUID()
  await insertUser(db, { id: userId, email: 'ann@example.org', passwordHash: null, signupNetwork: null })
  const safe = ['GET', 'HEAD', 'OPTIONS']
  const acts = listRoutes(console_.app)
    .filter(({ method, url }) => !safe.includes(method) && !['/login', '/logout'].includes(url))
    .map(({ method, url }) => `${method} ${url}`)
  assert.deepEqual(new Set(acts), new Set(Object.keys(ACTS)))
  for (const [act, { body, action }] of Object.entries(ACTS)) {
    const key = randomUUID()
    const row = { id: key, user_id: userId, environment: 'live', key_hash: randomBytes(32), last_four: '0000' } as const
    await db.insertInto('api_keys').values(row).execute()
    const id = act.includes('/keys/:id') ? key : userId
    const [method = '', path = ''] = act.split(' ')
    const url = path.replace(':slug', 'weather').replace(':id', id).replace(':key', key)
    const headers = { cookie, ...SAME_SITE, 'x-operator': 'somebody-else' }
    const answer = ask({ method: method as 'POST', url, headers, ...(body ? { payload: body } : {}) })
    // This test has no worker that would send the probe.
    if (action === 'upstream.probe') await until(async () => (await lastAudit()).action === action)
    else assert.ok((await answer).statusCode < 400, act)
    const record = await lastAudit()
    assert.deepEqual([record.action, record.actor], [action, 'ada@example.org (oidc, 127.0.0.1)'], act)
  }
})

describe('a request that an access proxy sends', () => {
  const asProxy = { 'x-trusted-header-secret': PROXY_SECRET, 'x-forwarded-user': 'grace' }

  it('a request that an access proxy sends is of the person whom the proxy names, with the rights of their groups', async () => {
    const operator = { ...asProxy, 'x-forwarded-groups': 'other, gateway-operators' }
    assert.equal((await ask({ url: '/', headers: operator })).statusCode, 200)
    assert.equal((await ask({ ...CHANGE, headers: { ...operator, ...SAME_SITE } })).statusCode, 200)
    assert.equal((await lastAudit()).actor, 'grace (proxy, 127.0.0.1)')
    const viewer = { ...asProxy, 'x-forwarded-groups': 'staff' }
    const page = await ask({ url: '/', headers: viewer })
    assert.equal(page.statusCode, 200)
    assert.match(page.body, /<body data-role="viewer">/, 'its style sheet hides the buttons that a viewer may not use')
    assert.equal((await ask({ ...CHANGE, headers: { ...viewer, ...SAME_SITE } })).statusCode, 403)
    const stranger = { ...asProxy, 'x-forwarded-groups': 'gateway-operators2' }
    assert.equal((await ask({ url: '/v1/operator/audit', headers: stranger })).statusCode, 403)
    // The browser adds the cookie of the proxy to requests of any page.
    const foreign = { ...operator, 'sec-fetch-site': 'cross-site' }
    assert.equal((await ask({ ...CHANGE, headers: foreign })).statusCode, 403)
    assert.equal((await ask({ ...CHANGE, headers: operator })).statusCode, 403)
  })

  it('the headers of an access proxy count only with the secret and from the address of the proxy', async () => {
    const forged = { 'x-forwarded-user': 'grace', 'x-forwarded-groups': 'gateway-operators' }
    const withSecret = { ...forged, 'x-trusted-header-secret': PROXY_SECRET }
    const url = '/v1/operator/audit'
    assert.equal((await ask({ url, headers: forged })).statusCode, 401)
    assert.equal((await ask({ url, headers: { ...withSecret, 'x-trusted-header-secret': 'guess' } })).statusCode, 401)
    // From inside the proxy's network, and with its secret, but from another address.
    assert.equal((await ask({ url, headers: withSecret, remoteAddress: '127.0.0.2' })).statusCode, 401)
    assert.equal((await ask({ url, headers: withSecret, remoteAddress: '::ffff:127.0.0.1' })).statusCode, 200)
  })
})

describe('the operator token', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded', ...SAME_SITE }

  it('the operator token opens the console while the provider is unreachable, and the audit log says that somebody used it', async () => {
    const entered = await ask({ method: 'POST', url: '/login', headers: form, payload: `token=${console_.token}` })
    assert.equal(entered.statusCode, 303)
    const login = await lastAudit()
    assert.deepEqual([login.actor, login.action], ['operator (127.0.0.1)', 'console.login'])
    await ask({ method: 'POST', url: '/login', headers: form, payload: `token=${console_.token}&name=Bea` })
    assert.equal((await lastAudit()).actor, 'Bea (127.0.0.1)')
    const headers = { ...console_.bearer, 'x-operator': 'robin' }
    assert.equal((await ask({ ...CHANGE, headers })).statusCode, 200)
    assert.equal((await lastAudit()).actor, 'robin (127.0.0.1)')
  })

  it('the operator token is accepted only as a bearer token if OPERATOR_TOKEN_LOGIN is off', async (t) => {
    const closed = await openTestConsole({
      ...{ OIDC_ISSUER: issuer.url, OIDC_CLIENT_ID: issuer.clientId, OIDC_CLIENT_SECRET: issuer.clientSecret },
      ...{ OIDC_OPERATOR_GROUPS: 'o', OPERATOR_TOKEN_LOGIN: 'off' },
    })
    t.after(() => closed.stop())
    const page = await closed.app.inject({ url: '/', headers: { accept: 'text/html' } })
    assert.equal(page.statusCode, 401)
    assert.match(page.body, /href="\/login\/oidc\?next=%2F"/)
    assert.doesNotMatch(page.body, /<form/)
    const options = { method: 'POST', url: '/login', headers: form, payload: `token=${closed.token}` } as const
    assert.equal((await closed.app.inject(options)).statusCode, 401)
    assert.equal((await closed.app.inject({ url: '/metrics', headers: closed.bearer })).statusCode, 200)
  })
})

it('settings of named operators that would let in nobody or everybody end the process with the name of the variable', () => {
  const base = { ...testSecrets(), DATABASE_URL: 'postgres://x/y', REDIS_URL: 'redis://x' }
  const oidc = { OIDC_ISSUER: 'https://id.example', OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET: 'y' }
  const proxy = {
    TRUSTED_USER_HEADER: 'x-user',
    TRUSTED_GROUPS_HEADER: 'x-groups',
    TRUSTED_HEADER_SECRET: PROXY_SECRET,
  }
  const groups = { OIDC_OPERATOR_GROUPS: 'o' }
  const refuses = (environment: Record<string, string>, message: RegExp) =>
    assert.throws(
      () => loadConfig({ ...base, ...environment }),
      (error) => error instanceof ConfigError && message.test(error.message),
    )
  refuses(oidc, /^OIDC_OPERATOR_GROUPS is required/)
  refuses({ ...oidc, ...groups, OIDC_ISSUER: 'http://id.example' }, /^OIDC_ISSUER must be an https: address/)
  refuses({ ...oidc, ...groups, OIDC_CLIENT_SECRET: '' }, /^OIDC_CLIENT_SECRET is required/)
  refuses({ ...proxy, ...groups }, /^TRUST_PROXY is required/)
  refuses(
    { ...proxy, ...groups, TRUST_PROXY: '10.0.0.1', TRUSTED_HEADER_SECRET: '' },
    /^TRUSTED_HEADER_SECRET is required/,
  )
  refuses({ ...proxy, ...groups, TRUST_PROXY: '10.0.0.1', TRUSTED_GROUPS_HEADER: '' }, /^TRUSTED_GROUPS_HEADER is req/)
  refuses({ ...groups }, /^OIDC_ISSUER or TRUSTED_USER_HEADER is required if OIDC_OPERATOR_GROUPS is set/)
  const claim = { OIDC_GROUPS_CLAIM: 'roles' }
  refuses({ ...oidc, ...claim, OIDC_ACCOUNTS: 'on' }, /^OIDC_OPERATOR_GROUPS is required if OIDC_GROUPS_CLAIM is set/)
  refuses({ ...proxy, ...groups, ...claim, TRUST_PROXY: '10.0.0.1' }, /^OIDC_ISSUER is required if OIDC_GROUPS_CLAIM/)
  refuses({ OPERATOR_TOKEN_LOGIN: 'off' }, /^OPERATOR_TOKEN_LOGIN must be on/)
  loadConfig({ ...base, ...oidc, ...groups })
})
