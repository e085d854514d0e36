import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Account, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { type OidcIssuer, startOidcIssuer } from '../support/oidc-issuer.ts'

const PAGE = { accept: 'text/html' }

describe('the sign-in of an account by the OIDC provider', () => {
  let mail: MailServer
  let issuer: OidcIssuer
  let gateway: Gateway

  before(async () => {
    mail = await startMailServer()
    issuer = await startOidcIssuer()
    gateway = await startGateway({
      ...{ isInProcess: true, webNodes: 2, workers: 0 },
      environment: {
        ...{ OIDC_ISSUER: issuer.url, OIDC_CLIENT_ID: issuer.clientId, OIDC_CLIENT_SECRET: issuer.clientSecret },
        ...{ OIDC_ACCOUNTS: 'on', OIDC_NAME: 'Example ID', SMTP_URL: mail.url, SIGNUP: 'approval' },
      },
    })
  })
  after(async () => {
    await gateway.stop()
    await issuer.close()
    await mail.close()
  })
  beforeEach(() => {
    Object.assign(issuer, { person: {}, wrong: {}, hasWrongKey: false, isTerse: false, isAway: false })
  })

  interface Answer {
    status: number
    body: string
    location: string
    /** What the browser has afterwards. */
    cookie: string
    token: string | undefined
  }

  async function browse(
    path: string,
    { cookie = '', form, headers = {}, node = 0, method = form ? 'POST' : 'GET' }: BrowseOptions = {},
  ): Promise<Answer> {
    const app = gateway.apps.get(gateway.urls[node] ?? '') ?? assert.fail()
    const answer = await app.inject({
      method,
      url: path,
      headers: {
        ...{ ...PAGE, host: 'localhost:3000', cookie, ...headers },
        ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      },
      ...(form ? { payload: String(new URLSearchParams(form)) } : {}),
    })
    const jar = new Map(cookie.split('; ').flatMap((pair) => (pair === '' ? [] : [pair.split('=', 2) as Pair])))
    for (const { name, value } of answer.cookies) value === '' ? jar.delete(name) : jar.set(name, value)
    return {
      ...{ status: answer.statusCode, body: answer.body, location: String(answer.headers.location ?? '') },
      cookie: [...jar].map((pair) => pair.join('=')).join('; '),
      token: jar.get('agw_session'),
    }
  }
  type Pair = [name: string, value: string]
  interface BrowseOptions {
    cookie?: string
    form?: Record<string, string>
    method?: 'GET' | 'HEAD' | 'POST'
    headers?: Record<string, string>
    node?: number
  }

  /**
   * Goes to the provider.
   * @returns the address of the way back, and the browser's cookie
   */
  async function goToProvider(next = '/account/keys', cookie = ''): Promise<{ back: string; cookie: string }> {
    const begun = await browse(`/login/oidc?next=${encodeURIComponent(next)}`, { cookie })
    assert.equal(begun.status, 303, begun.body)
    const atProvider = await fetch(begun.location, { redirect: 'manual' })
    const back = new URL(atProvider.headers.get('location') ?? '')
    assert.equal(back.origin + back.pathname, 'http://localhost:3000/login/callback')
    return { back: back.pathname + back.search, cookie: begun.cookie }
  }

  async function signIn(person: Record<string, unknown>, next?: string): Promise<Answer> {
    issuer.person = person
    const { back, cookie } = await goToProvider(next)
    return await browse(back, { cookie, node: 1 })
  }

  const newPerson = (claims: Record<string, unknown> = {}) => {
    const sub: string = randomUUID()
    return { sub, email: `${sub}@example.org`, email_verified: true, ...claims }
  }
  const me = async (token: string | undefined) =>
    (await send(gateway, '/v1/me', { token: token ?? 'none.none.none' })).body
  const logIn = async (email: string, password: string) =>
    (await send(gateway, '/v1/auth/login', { body: { email, password } })).status
  const claimOf = ({ body }: Answer): string => /name="claim" value="([^"]+)"/.exec(body)?.[1] ?? assert.fail(body)
  const prove = (account: Account) =>
    sql(gateway, 'update users set email_verified_at = now() where id = $1', [account.id])
  const actions = async (id: string) =>
    (await sql<{ action: string }>(gateway, 'select action from audit_log where subject = $1 order by id', [id])).map(
      ({ action }) => action,
    )

  it('the sign-in of an account by the OIDC provider makes an account for a new person, who may make live calls and needs a password only to delete the account', async () => {
    const person = newPerson()
    const answer = await signIn(person)
    assert.equal(answer.status, 200, answer.body)
    assert.match(answer.body, /http-equiv="refresh" content="0;url=\/account\/keys"/)
    assert.match(answer.body, /data-view="signed-in"/, 'its script tells the other tabs')
    const account = await me(answer.token)
    assert.equal(account.email, person.email)
    assert.equal(account.tier, 'developer')
    const { body: trust } = await send(gateway, '/v1/auth/verification', { token: answer.token })
    assert.deepEqual(trust, { emailVerified: true, liveCallsNeed: null })
    const again = await signIn(person)
    assert.equal((await me(again.token)).id, account.id)

    for (const password of ['', 'no account has this password', 'null'])
      assert.equal(await logIn(person.email, password), 401)
    const leave = { method: 'DELETE', token: answer.token, body: { password: 'no account has this password' } }
    const refused = await send(gateway, '/v1/me', leave)
    assert.equal(refused.status, 401)
    assert.match(refused.body.message, /has no password/)
    const change = { currentPassword: '', newPassword: 'a password of mine' }
    assert.equal((await send(gateway, '/v1/auth/password', { token: answer.token, body: change })).status, 401)
    const { body: data } = await send(gateway, '/v1/me/export', { token: answer.token })
    assert.deepEqual(
      data.identities.map(({ issuer, subject }: Record<string, unknown>) => [issuer, subject]),
      [[issuer.url, person.sub]],
    )
    assert.equal(data.profile.hasPassword, false)

    // Its link sets the first password, with which it leaves.
    await send(gateway, '/v1/auth/reset', { body: { email: person.email } })
    const links = () => mail.mails.filter(({ to }) => to === person.email)
    await until(() => links().length > 0)
    const token = /reset\?token=([\w-]+)/.exec(links()[0]?.text ?? '')?.[1] ?? assert.fail()
    const password = 'a password of mine'
    assert.equal((await browse('/reset', { form: { token, newPassword: password } })).status, 200)
    assert.equal((await send(gateway, '/v1/me', { token: answer.token })).status, 401)
    assert.equal(await logIn(person.email, password), 200)
    const last = await signIn(person)
    const left = await send(gateway, '/v1/me', { method: 'DELETE', token: last.token, body: { password } })
    assert.equal(left.status, 204)
    assert.notEqual((await me((await signIn(person)).token)).id, account.id)
  })

  it('the sign-in of an account by the OIDC provider ends with its log-out, and knows a person by the name at the provider whatever address they have', async () => {
    const person = newPerson()
    const first = await signIn(person)
    const { id, email } = await me(first.token)
    const cookie = first.cookie
    const logout = { method: 'POST', token: first.token ?? '', headers: { cookie } }
    assert.equal((await send(gateway, '/v1/auth/logout', logout)).status, 204)
    assert.equal((await send(gateway, '/v1/me', { token: first.token })).status, 401)
    const other = await signUp(gateway)
    for (const change of [{ email: other.email }, { email_verified: false }, { email: undefined }]) {
      const account = await me((await signIn({ ...person, ...change })).token)
      assert.deepEqual([account.id, account.email], [id, email])
    }
  })

  it('the sign-in of an account by the OIDC provider makes one account of a person who comes by two tabs at once', async () => {
    issuer.person = newPerson()
    const tabs = [await goToProvider(), await goToProvider()]
    const answers = await Promise.all(tabs.map(({ back, cookie }, node) => browse(back, { cookie, node })))
    const ids = await Promise.all(answers.map(async ({ token }) => (await me(token)).id))
    assert.ok(ids[0])
    assert.equal(ids[0], ids[1])
  })

  it('the sign-in of an account by the OIDC provider is refused without an address that the provider reports as verified', async () => {
    const stranger = await signUp(gateway)
    await prove(stranger)
    for (const claims of [
      { email_verified: false },
      { email_verified: 'true' },
      { email_verified: undefined },
      { email_verified: 1 },
      { email: undefined },
      { email: 7 },
      { email: `a@x.example,${stranger.email}` },
      { email: `"a b"@example.org` },
      { email: 'ä@example.org' },
      { email: `${'x'.repeat(250)}@example.org` },
    ]) {
      for (const isTerse of [false, true]) {
        issuer.isTerse = isTerse
        const answer = await signIn(newPerson({ email: stranger.email, ...claims }))
        assert.equal(answer.status, 403, JSON.stringify(claims))
        assert.equal(answer.token, undefined)
      }
    }
    assert.deepEqual(await sql(gateway, 'select 1 from identities where user_id = $1', [stranger.id]), [])
    // The user info alone may say it.
    issuer.isTerse = true
    assert.equal((await signIn(newPerson())).status, 200)
  })

  it('the sign-in of an account by the OIDC provider leads to the account that has proven the same address, which is told so by mail', async () => {
    const account = await signUp(gateway)
    await prove(account)
    const person = newPerson({ email: account.email.toUpperCase() })
    const answer = await signIn(person)
    assert.equal((await me(answer.token)).id, account.id)
    await until(() => mail.mails.some(({ to, text }) => to === account.email && /sign-in by Example ID/.test(text)))
    assert.deepEqual(await actions(account.id), ['user.link'])
    assert.equal(await logIn(account.email, account.password), 200, 'the password stays')
    assert.equal((await send(gateway, '/v1/me', { token: account.token })).status, 200)

    // The provider gave the address to somebody else: they need the password of the account.
    const second = await signIn(newPerson({ email: account.email }))
    assert.equal(second.token, undefined)
    assert.match(second.body, /belongs to somebody else at Example ID/)
    assert.doesNotMatch(second.body, /Start anew/)
    const claim = claimOf(second)
    assert.equal((await browse('/login/claim', { form: { claim } })).status, 403, 'no button sends this')
    assert.equal((await me((await signIn(person)).token)).id, account.id)
    const linked = await browse('/login/claim', { form: { claim, password: account.password } })
    assert.equal((await me(linked.token)).id, account.id)
    assert.match((await signIn(person)).body, /belongs to somebody else/, 'one person of the provider has an account')
  })

  it('the sign-in of an account by the OIDC provider does not link an account whose address is not proven without its password', async () => {
    const account = await signUp(gateway)
    const person = newPerson({ email: account.email })
    const answer = await signIn(person)
    assert.equal(answer.status, 200)
    assert.equal(answer.token, undefined)
    assert.match(answer.body, /nobody has verified this address/)
    const claim = claimOf(answer)
    const wrong = await browse('/login/claim', { form: { claim, password: 'a guess' } })
    assert.equal(wrong.status, 401)
    assert.equal(wrong.token, undefined)
    assert.match(wrong.body, /The password is wrong/)
    const foreign = { form: { claim, password: account.password }, headers: { origin: 'https://evil.example' } }
    assert.equal((await browse('/login/claim', foreign)).status, 403)
    for (const forged of ['', 'x.y', claim.slice(0, -4), `${claim}AAAA`])
      assert.equal((await browse('/login/claim', { form: { claim: forged, password: 'x' } })).status, 401)
    const linked = await browse('/login/claim', { form: { claim: claimOf(wrong), password: account.password } })
    assert.equal((await me(linked.token)).id, account.id)
    assert.match(linked.body, /url=\/account\/keys/)
    assert.equal((await me((await signIn(person)).token)).id, account.id)
    const { body: trust } = await send(gateway, '/v1/auth/verification', { token: linked.token })
    assert.deepEqual(
      trust,
      { emailVerified: true, liveCallsNeed: 'approval' },
      'the operator decides about an account that was there',
    )
  })

  it('the sign-in of an account by the OIDC provider replaces an account that somebody else made with the address, who keeps nothing of it', async () => {
    const account = await signUp(gateway, 'pro')
    const accomplice = await signUp(gateway)
    const { token } = account
    const { body: made } = await send(gateway, '/v1/teams', { token, body: { name: 'T' } })
    const member = { email: accomplice.email, role: 'admin' }
    await sql(gateway, 'update users set email_verified_at = now() where id = $1', [accomplice.id])
    assert.equal((await send(gateway, `/v1/teams/${made.team.id}/members`, { token, body: member })).status, 201)
    const teamKey = await send(gateway, '/v1/keys', { token: accomplice.token, body: { teamId: made.team.id } })
    await send(gateway, '/v1/provider-keys/news', { method: 'PUT', token, body: { key: 'a key of a stranger' } })
    const person = newPerson({ email: account.email })
    const claim = claimOf(await signIn(person))
    const other = claimOf(await signIn(newPerson({ email: account.email })))
    const anew = await browse('/login/claim', { form: { claim } })
    assert.equal(anew.status, 200, anew.body)
    const { id, tier } = await me(anew.token)
    assert.notEqual(id, account.id)
    assert.equal(tier, 'pro', 'the plan is what the operator gave to the address')
    assert.equal((await send(gateway, '/v1/me', { token })).status, 401)
    assert.equal(await logIn(account.email, account.password), 401)
    for (const key of [account.live, account.test, teamKey.body.key])
      for (const url of gateway.urls)
        assert.equal((await send(gateway, '/v1/call/weather/current', { key, url })).status, 401)
    const { body: data } = await send(gateway, '/v1/me/export', { token: anew.token })
    assert.deepEqual([data.teams, data.providerKeys, data.connections], [[], [], []])
    assert.equal(data.identities.length, 1)
    assert.deepEqual(await actions(id), ['user.start-anew'])
    // A second person who had begun the same is too late.
    assert.equal((await browse('/login/claim', { form: { claim: other } })).status, 403)
    assert.equal((await browse('/login/claim', { form: { claim: other, password: account.password } })).status, 401)
    assert.equal((await me((await signIn(person)).token)).id, id)
  })

  it('the sign-in of an account by the OIDC provider does not lead to a disabled account', async () => {
    const [linked, proven, unproven] = [newPerson(), await signUp(gateway), await signUp(gateway)]
    const { token } = await signIn(linked)
    await prove(proven)
    const late = claimOf(await signIn(newPerson({ email: unproven.email })))
    const disabled = [(await me(token)).id, proven.id, unproven.id]
    await sql(gateway, 'update users set disabled_at = now() where id = any($1)', [disabled])
    for (const person of [linked, newPerson({ email: proven.email }), newPerson({ email: unproven.email })]) {
      const answer = await signIn(person)
      assert.equal(answer.status, 403)
      assert.match(answer.body, /disabled/)
      assert.equal(answer.token, undefined)
    }
    for (const form of [{ claim: late }, { claim: late, password: unproven.password }])
      assert.equal((await browse('/login/claim', { form })).status, 403)
  })

  it('the sign-in of an account by the OIDC provider ends in the browser in which it began, once, with an answer of the provider that is right', async () => {
    issuer.person = newPerson()
    const own = await goToProvider()
    const others = await goToProvider()
    const before = issuer.exchanges
    // A stranger's code in the browser of somebody who began no sign-in, or another sign-in.
    for (const cookie of [
      '',
      others.cookie,
      'agw_sign_in=x.AAAA',
      own.cookie.replace('agw_sign_in', 'agw_console_sign_in'),
    ])
      assert.equal((await browse(own.back, { cookie })).status, 401)
    assert.equal((await browse('/login/callback', { cookie: own.cookie })).status, 401)
    assert.equal(issuer.exchanges, before, 'the provider hears nothing of it')
    assert.equal((await browse(own.back, { cookie: own.cookie, method: 'HEAD' })).status, 405)
    assert.equal(issuer.exchanges, before, 'a HEAD request does not use the code')
    const right = await browse(own.back, { cookie: own.cookie })
    assert.equal(right.status, 200)
    assert.doesNotMatch(right.cookie, /agw_sign_in/)
    assert.equal((await browse(own.back, { cookie: own.cookie })).status, 401, 'the provider takes a code once')
    for (const wrong of [
      ...[{ nonce: 'another' }, { iss: 'https://another.example' }, { aud: 'another-client' }, { exp: 1_000 }],
      { sub: undefined },
      { sub: 'x'.repeat(300) },
    ]) {
      issuer.wrong = wrong
      const answer = await signIn(newPerson())
      assert.equal(answer.status, 401, JSON.stringify(wrong))
      assert.equal(answer.token, undefined)
    }
    Object.assign(issuer, { wrong: {}, hasWrongKey: true })
    assert.equal((await signIn(newPerson())).status, 401)
  })

  it('the sign-in of an account by the OIDC provider leads to no other site, whatever an address says', async () => {
    const person = newPerson()
    for (const next of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/\t/evil.example',
      '/login/oidc',
      'x',
    ])
      assert.match((await signIn(person, next)).body, /content="0;url=\/"/, next)
    assert.match((await signIn(person, '/connect/x?a=1#b"><script>')).body, /content="0;url=\/connect\/x\?a=1"/)
  })

  it('the sign-in of an account by the OIDC provider reports that the provider does not answer, and works again when the provider answers', async () => {
    for (const page of ['/login', '/signup'])
      assert.match((await browse(page)).body, /href="\/login\/oidc" data-provider>Sign in with Example ID</)
    const alone = await gateway.startWeb({ OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_NAME: 'Nobody' })
    const app = gateway.apps.get(alone) ?? assert.fail()
    const away = await app.inject({ url: '/login/oidc', headers: PAGE })
    assert.equal(away.statusCode, 503)
    assert.match(away.body, /Nobody does not answer/)
    assert.equal((await app.inject({ url: '/login' })).statusCode, 200)
    issuer.isAway = true
    issuer.person = newPerson()
    const { back, cookie } = await goToProvider()
    assert.equal((await browse(back, { cookie })).status, 401)
    issuer.isAway = false
    assert.equal((await signIn(newPerson())).status, 200)
  })
})
