import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import type { Browser } from 'playwright-core'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { keys } from '../../src/redis/keys.ts'
import { launchBrowser } from '../support/browser.ts'
import { type Account, type Answer, send, signUp, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import {
  type App,
  authorizeUrl,
  codeChallenge,
  codeVerifier,
  postForm,
  registerApp,
  signIn,
  Visitor,
} from '../support/oauth-client.ts'
import { GENERATIONS, SdkProcess } from '../support/oauth-sdk.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { type Stage, startStage } from '../support/stage.ts'

describe('an application that signs in', () => {
  let stage: Stage
  let gateway: Gateway
  let account: Account
  /** The public address, which the first node listens on, and the address of another node. */
  let url: string
  let other: string
  let app: App
  let browser: Browser | undefined

  before(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    stage = await startStage({
      isInProcess: true,
      caps: { 'dog-images': 'concurrency=20,1000/1', 'random-facts': undefined, currency: undefined },
      environment: { PORT: String(port), BASE_URL: url },
    })
    ;({ gateway, account } = stage)
    other = await gateway.startWeb({ PORT: '0' })
    stage.upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
    app = await registerApp(url)
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await stage.stop()
  })

  const json = async (response: Response) => ({ status: response.status, body: JSON.parse(await response.text()) })
  const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const ask = (path: string, token: string, node = url): Promise<Answer> =>
    send(gateway, path, { url: node, token, body: listTools })
  const call = (token: string, node = url): Promise<Answer> =>
    send(gateway, '/v1/call/dog-images/random', { url: node, token })
  const connections = async (of = account) =>
    (await send(gateway, '/v1/connections', { token: of.token })).body.connections
  const refresh = (token: string, node = url) =>
    postForm(`${node}/oauth/token`, { grant_type: 'refresh_token', client_id: app.clientId, refresh_token: token })

  it('an application that signs in finds every address from the 401 answer, under the public address, whatever host it requested', async () => {
    for (const [path, body] of [
      ['/mcp', listTools],
      ['/mcp/weather', listTools],
      ['/v1/call/weather/current'],
      ['/v1/calls/x'],
    ] as const) {
      const { status, headers } = await send(gateway, path, body ? { body } : {})
      assert.equal(status, 401)
      const metadata =
        /resource_metadata="([^"]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1] ?? assert.fail(path)
      const described = await json(await fetch(metadata))
      assert.equal(described.body.resource, path.startsWith('/mcp') ? `${url}${path}` : url)
      assert.deepEqual(described.body.authorization_servers, [url])
    }
    const account401 = await send(gateway, '/v1/keys')
    assert.doesNotMatch(account401.headers.get('www-authenticate') ?? '', /resource_metadata/)
    for (const headers of [
      {},
      { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' },
    ]) {
      const response = await fetch(`${url}/.well-known/oauth-authorization-server`, { headers })
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
      const { body } = await json(response)
      assert.equal(body.issuer, url)
      for (const name of ['authorization', 'token', 'registration', 'revocation']) {
        assert.ok(body[`${name}_endpoint`].startsWith(`${url}/oauth/`), body[`${name}_endpoint`])
      }
      assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
      assert.equal(body.client_id_metadata_document_supported, true)
      assert.ok(!JSON.stringify(body).includes('evil'))
    }
    assert.equal((await fetch(`${url}/.well-known/oauth-protected-resource/mcp/nothing`)).status, 404)
  })

  it('an application that signs in calls with its token until its user ends the connection, on every node from the next request on', async () => {
    const caller = await signUp(gateway)
    const tokens = await (await signIn(url, caller.token, { app, resource: url })).tokens()
    assert.equal(tokens.expires_in, 28_800)
    for (const node of [url, other]) assert.equal((await call(tokens.access_token, node)).status, 200)
    const [connection] = await connections(caller)
    assert.deepEqual(
      [connection.clientName, connection.redirectHost, connection.resource, connection.apis, connection.perMonth],
      ['Test application', '127.0.0.1:9', url, null, null],
    )
    await until(async () => (await connections(caller))[0].lastUsedAt !== null)
    const usage = async () => (await send(gateway, '/v1/usage?groupBy=key', { token: caller.token })).body.usage
    // Each node writes what it has counted by itself, and a little later.
    await until(async () => (await usage())[0]?.calls === 2)
    assert.deepEqual(await usage(), [{ key: connection.id, calls: 2 }])
    const ended = await send(gateway, `/v1/connections/${connection.id}`, {
      method: 'DELETE',
      token: caller.token,
      url: other,
    })
    assert.equal(ended.status, 204)
    for (const node of [url, other]) {
      const refused = await call(tokens.access_token, node)
      assert.deepEqual([refused.status, refused.body.error.code], [401, 'INVALID_TOKEN'])
    }
    assert.deepEqual((await json(await refresh(tokens.refresh_token))).body.error, 'invalid_grant')
    assert.deepEqual(await connections(caller), [])
    const again = await send(gateway, `/v1/connections/${connection.id}`, { method: 'DELETE', token: caller.token })
    assert.equal(again.body.code, 'CONNECTION_NOT_FOUND')
  })

  it('an application that must sign in again on one machine learns this there, and does not get tokens that are refused later', async () => {
    const caller = await signUp(gateway)
    const first = await (await signIn(url, caller.token, { app, resource: url })).tokens()
    const second = await (await signIn(url, caller.token, { app, resource: url })).tokens()
    assert.equal((await call(first.access_token)).status, 401)
    assert.equal((await json(await refresh(first.refresh_token))).body.error, 'invalid_grant')
    const renewed = (await json(await refresh(second.refresh_token))).body
    assert.equal((await call(renewed.access_token)).status, 200)
    assert.equal((await connections(caller)).length, 1)
  })

  it('an application whose id or name has a NUL is unknown or refused, and is no failure of the gateway', async () => {
    const asked = await fetch(`${url}/oauth/authorize?client_id=%00&response_type=code`, { redirect: 'manual' })
    assert.equal(asked.status, 400)
    const form = { grant_type: 'refresh_token', client_id: '\0', refresh_token: 'x' }
    const { status, body } = await json(await postForm(`${url}/oauth/token`, form))
    assert.deepEqual([status, body.error], [401, 'invalid_client'])
    const registered = await fetch(`${url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'a\0b', redirect_uris: ['http://127.0.0.1:9/'] }),
    })
    assert.deepEqual([registered.status, (await json(registered)).body.error], [400, 'invalid_client_metadata'])
  })

  it('an application that signs in has a token for one resource, and for no route of an account', async () => {
    const { access_token: token } = await (
      await signIn(url, account.token, { app, resource: `${url}/mcp/dog-images` })
    ).tokens()
    assert.equal((await ask('/mcp/dog-images', token)).status, 200)
    const called = await send(gateway, '/mcp/dog-images', {
      token,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'dog_images_random', arguments: {} } },
    })
    assert.equal(called.body.result.structuredContent.image_url, 'https://images.dog.ceo/breeds/a/b.jpg')
    for (const refused of [await ask('/mcp', token), await ask('/mcp/weather', token), await call(token)]) {
      assert.equal(refused.status, 401, refused.text)
      assert.ok(refused.text.includes('another resource'))
    }
    // It still counts as a request of its account, and it says what the account has left.
    assert.ok((await ask('/mcp', token)).headers.get('ratelimit'))
    for (const path of ['/v1/keys', '/v1/me', '/v1/connections', '/v1/billing/status', '/v1/usage', '/v1/teams']) {
      assert.equal((await send(gateway, path, { token })).status, 401, path)
    }
    const [{ id }] = await connections()
    assert.equal((await send(gateway, `/v1/connections/${id}`, { method: 'DELETE', token })).status, 401)
    const stranger = await signUp(gateway)
    const theirs = await send(gateway, `/v1/connections/${id}`, { method: 'DELETE', token: stranger.token })
    assert.equal(theirs.status, 404)
  })

  it('an application that signs in may call the APIs and as often as its user allowed, and a call that was refused costs it nothing', async () => {
    const caller = await signUp(gateway)
    const decision = { allow: true, apis: ['dog-images', 'weather'], perMonth: 3 }
    const { access_token: token } = await (await signIn(url, caller.token, { app, resource: url, decision })).tokens()
    const forbidden = await send(gateway, '/v1/call/currency/latest', { token })
    assert.deepEqual([forbidden.status, forbidden.body.error.code], [403, 'KEY_API_FORBIDDEN'])
    assert.match(forbidden.body.error.hint, /allowed=dog-images,weather/)
    assert.equal((await send(gateway, '/v1/call/weather/current', { token })).status, 400)
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => call(token, index % 2 ? url : other)))
    const counts = Map.groupBy(answers, ({ status }) => status)
    assert.deepEqual([counts.get(200)?.length, counts.get(429)?.length], [3, 5])
    assert.equal(counts.get(429)?.[0]?.body.error.code, 'MONTHLY_QUOTA_EXCEEDED')
    assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: caller.live })).status, 200)
    const rehearsed = await send(gateway, '/v1/call/dog-images/random', {
      token,
      headers: { 'x-gateway-mode': 'test' },
    })
    assert.deepEqual([rehearsed.status, rehearsed.headers.get('x-gateway-mode')], [200, 'test'])
    // If Redis forgets a count, the node reads it from the ledger.
    await until(
      async () =>
        (
          await sql(gateway, "select from usage_daily where user_id = $1 and status = 200 and mode = 'live'", [
            caller.id,
          ])
        ).length === 2,
    )
    const [name = ''] = await stage.redis.keys(`agw:{a:${caller.id}}:connection:*`)
    await stage.redis.del(name)
    assert.equal((await call(token)).status, 429)
  })

  it('an application that signs in is used from the addresses that its user lists, on every node from the next request on', async () => {
    const caller = await signUp(gateway)
    const { access_token: token } = await (await signIn(url, caller.token, { app, resource: url })).tokens()
    const [{ id, addresses }] = await connections(caller)
    assert.equal(addresses, null)
    const change = (body: object) =>
      send(gateway, `/v1/connections/${id}`, { method: 'PATCH', token: caller.token, body, url: other })
    const onBoth = async () => await Promise.all([url, other].map(async (node) => (await call(token, node)).status))
    assert.deepEqual(await onBoth(), [200, 200])
    assert.deepEqual((await change({ addresses: ['203.0.113.7/24'] })).body.addresses, ['203.0.113.0/24'])
    assert.deepEqual(await onBoth(), [403, 403])
    const { error } = (await call(token)).body
    assert.equal(error.code, 'KEY_ADDRESS_FORBIDDEN')
    assert.equal(error.message, 'The account does not allow this application to call from the address 127.0.0.1.')
    assert.deepEqual((await change({ addresses: ['127.0.0.1', '::1'] })).body.addresses, ['127.0.0.1', '::1'])
    assert.deepEqual(await onBoth(), [200, 200])
    assert.equal((await change({ addresses: null })).body.addresses, null)
  })

  it('an application that signs in gets its unit of the month back for a call that fails upstream, and reads what it has left', async () => {
    const caller = await signUp(gateway)
    const decision = { allow: true, perMonth: 2 }
    const { access_token: token } = await (await signIn(url, caller.token, { app, resource: url, decision })).tokens()
    const left = ({ headers }: { headers: Headers }) =>
      /"credential-month";r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1]
    const first = await call(token)
    assert.deepEqual([first.status, left(first)], [200, '1'])
    assert.match(first.headers.get('ratelimit-policy') ?? '', /, "credential-month";q=2, "in-flight"/)
    const fail = (slug: string) => stage.upstream.play(slug, (_arrival, response) => void response.writeHead(501).end())
    // A node gives the unit back, or the worker that ends an asynchronous call. There are two APIs,
    // because a failure may open the breaker of the first.
    for (const [slug, endpoint, headers] of [
      ['random-facts', 'random', {}],
      ['currency', 'latest', { prefer: 'respond-async' }],
    ] as const) {
      fail(slug)
      const failed = await send(gateway, `/v1/call/${slug}/${endpoint}`, { token, headers })
      const code = failed.body.error?.code
      assert.deepEqual([failed.status, code], slug === 'currency' ? [202, undefined] : [502, 'UPSTREAM_ERROR'])
      if (failed.status === 502) assert.equal(left(failed), '1', 'its own answer says so')
      const reading = async () => await send(gateway, '/v1/call/dog-images/nowhere', { token })
      await until(async () => left(await reading()) === '1')
      assert.ok(stage.upstream.arrivalsOf(slug).length > 0)
    }
    const second = await call(token)
    assert.deepEqual([second.status, left(second)], [200, '0'], second.text)
  })

  it('an application that signs in reads in a batch that some calls did not fit into the limit of its user', async () => {
    const caller = await signUp(gateway)
    const decision = { allow: true, perMonth: 1 }
    const { access_token: token } = await (await signIn(url, caller.token, { app, resource: url, decision })).tokens()
    const calls = [
      { api: 'dog-images', endpoint: '/random' },
      { api: 'dog-images', endpoint: '/breed', parameters: { breed: 'hound' } },
    ]
    const body = { calls, take: 'fit' }
    const { body: answer } = await send(gateway, '/v1/batch', { token, body, headers: { accept: 'application/json' } })
    const { code, message } = answer.results[1].error
    assert.equal(code, 'MONTHLY_QUOTA_EXCEEDED', JSON.stringify(answer))
    assert.match(message, /this application 1 call a month/)
  })

  it('an application that signs in finds by search_apis the APIs that its user allowed, and no others', async () => {
    const found = async (decision: { allow: boolean; apis?: string[] }): Promise<string[]> => {
      const { access_token: token } = await (
        await signIn(url, account.token, { app, resource: `${url}/mcp`, decision })
      ).tokens()
      const params = { name: 'search_apis', arguments: { limit: 50 } }
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const { result } = (await send(gateway, '/mcp', { url, token, body })).body
      assert.equal(result.structuredContent.total, result.structuredContent.apis.length)
      return result.structuredContent.apis.map(({ api }: { api: string }) => api).sort()
    }
    assert.deepEqual(await found({ allow: true, apis: ['dog-images', 'weather'] }), ['dog-images', 'weather'])
    assert.ok((await found({ allow: true })).includes('currency'))
  })

  it('an application that signs in loses the connection when a code is used twice', async () => {
    const flow = await signIn(url, account.token, { app, resource: url })
    const { access_token: token } = await flow.tokens()
    assert.equal((await call(token)).status, 200)
    assert.equal((await json(await flow.exchange())).body.error, 'invalid_grant')
    assert.equal((await call(token)).status, 401)
    assert.ok(!(await connections()).some(({ resource }: { resource: string }) => resource === url))
  })

  it('an application that signs in may have its code sent by a form of the browser', async () => {
    const redirectUri = 'https://agent.example/callback'
    const asking = await registerApp(url, redirectUri)
    const headers = {
      ...{ 'content-type': 'application/json', 'x-portal-request': '1' },
      authorization: `Bearer ${account.token}`,
    }
    for (const [allow, name, status] of [
      [true, 'code', 200],
      [false, 'error', 400],
    ] as const) {
      const visitor = new Visitor()
      const given = { response_mode: 'form_post', code_challenge: codeChallenge(codeVerifier()) }
      const page = await visitor.begin(authorizeUrl(url, asking, given))
      const body = JSON.stringify({ allow })
      const decided = await visitor.get(`${page}/decision`, { method: 'POST', headers, body })
      const form = await visitor.get(JSON.parse(await decided.text()).location)
      assert.equal(form.status, status)
      const text = await form.text()
      assert.match(text, /<form method="post" action="https:\/\/agent\.example\/callback">/)
      assert.ok(text.includes(`name="${name}"`), text)
      assert.match(form.headers.get('content-security-policy') ?? '', /form-action https:\/\/agent\.example;/)
    }
    const large = await fetch(`${url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [redirectUri], client_name: 'x'.repeat(20_000) }),
    })
    assert.equal(large.status, 413)
  })

  it('an application that signs in can revoke its token', async () => {
    const tokens = await (await signIn(url, account.token, { app, resource: url })).tokens()
    assert.equal((await call(tokens.access_token, other)).status, 200)
    const given = await postForm(`${url}/oauth/revoke`, { client_id: app.clientId, token: tokens.access_token })
    assert.equal(given.status, 200)
    assert.equal((await call(tokens.access_token, other)).status, 401)
  })

  it('an application that signs in can revoke its token even if the answer of Postgres to the revocation is lost', async (t) => {
    const proxy = await startPostgresProxy(gateway.services.databaseUrl)
    t.after(() => proxy.close())
    const node = await gateway.startWeb({ PORT: '0', DATABASE_URL: proxy.url })
    const tokens = await (await signIn(url, account.token, { app, resource: url })).tokens()
    assert.equal((await call(tokens.access_token, other)).status, 200)
    proxy.breaksAfter = 'delete from "oauth_artifacts"'
    const given = await postForm(`${node}/oauth/revoke`, { client_id: app.clientId, token: tokens.access_token })
    assert.equal(given.status, 503)
    assert.equal((await call(tokens.access_token, other)).status, 401)
  })

  it('an application that signs in with the code of another application gets no token', async () => {
    const { code } = await signIn(url, account.token, { app })
    const form = { grant_type: 'authorization_code', client_id: app.clientId, redirect_uri: app.redirectUri, code }
    const wrong = await json(await postForm(`${url}/oauth/token`, { ...form, code_verifier: codeVerifier() }))
    assert.deepEqual([wrong.status, wrong.body.error], [400, 'invalid_grant'])
    assert.equal((await json(await postForm(`${url}/oauth/token`, form))).body.error, 'invalid_grant')
  })

  it('an application that signs in with a redirect that was not registered, without a challenge or with another resource does not get to the consent', async () => {
    const visitor = new Visitor()
    const foreign = await visitor.get(authorizeUrl(url, app, { redirect_uri: 'https://evil.example/' }))
    assert.equal(foreign.status, 400)
    assert.equal(foreign.headers.get('location'), null)
    assert.match(await foreign.text(), /cannot sign in/)
    const wrong: [given: Record<string, string>, words: RegExp][] = [
      [{ code_challenge: '', code_challenge_method: '' }, /PKCE/],
      [{ code_challenge_method: 'plain' }, /code_challenge_method/],
      [{ resource: `${url}/mcp//` }, /this server has no such resource/],
      [{ resource: `${url}/mcp#` }, /fragment|no such resource/],
      [{ resource: 'https://evil.example/mcp' }, /this server has no such resource/],
      [{ resource: `${url}/mcp/nothing` }, /this server has no such resource/],
      [{ prompt: 'none' }, /cannot sign in/],
      [{ prompt: 'none', response_mode: 'form_post' }, /cannot sign in/],
      [{ prompt: 'unknown' }, /prompt/],
      [{ response_type: 'token' }, /response_type/],
      [{ response_type: 'none', response_mode: 'fragment' }, /response_type/],
      [{ response_mode: 'form_post', code_challenge: '' }, /PKCE|code_challenge/],
      [{ request: 'x' }, /request/],
      [{ registration: '{}' }, /registration/],
      [{ scope: 'openid', max_age: '-1' }, /max_age/],
    ]
    for (const [given, words] of wrong) {
      const response = await visitor.get(authorizeUrl(url, app, given))
      const text = await response.text()
      assert.equal(response.status, 400, `${JSON.stringify(given)}: ${text.slice(0, 200)}`)
      assert.equal(response.headers.get('location'), null)
      assert.match(text, /cannot sign in/)
      assert.match(text, words)
      assert.doesNotMatch(text, /127\.0\.0\.1:9\/callback/)
      assert.match(response.headers.get('content-security-policy') ?? '', /form-action 'self'/)
    }
    for (const redirect of ['http://evil.example/callback', 'javascript:alert(1)']) {
      await assert.rejects(registerApp(url, redirect), /invalid_(redirect_uri|client_metadata)/)
    }
  })

  it('an application that signs in may send a state of 2 KiB, and nothing of an address above 4 KiB is stored', async (t) => {
    const app = await registerApp(url)
    const redis = new Redis(gateway.services.redisUrl)
    t.after(() => redis.disconnect())
    const begun = () => redis.zcard(keys.allSignIns)
    assert.match(await new Visitor().begin(authorizeUrl(url, app, { state: 's'.repeat(2_048) })), /\/connect\//)
    const before = await begun()
    assert.ok(before > 0)
    for (const given of [{ state: 's'.repeat(4_096) }, { nonce: 'n'.repeat(4_096) }]) {
      const answer = await fetch(authorizeUrl(url, app, given), { redirect: 'manual' })
      assert.equal(answer.status, 414)
      assert.match(await answer.text(), /"URI_TOO_LONG".*"Send a shorter state\."/)
    }
    assert.equal(await begun(), before)
  })

  it('an application can sign in only with the consent of its user, on the page of this gateway, in the browser in which the sign-in began', async () => {
    const visitor = new Visitor()
    const page = await visitor.begin(authorizeUrl(url, app))
    const decide = (headers: Record<string, string>, by = visitor) =>
      by.get(`${page}/decision`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{"allow":true}',
      })
    const session = { authorization: `Bearer ${account.token}` }
    const portal = { 'x-portal-request': '1' }
    assert.equal((await decide(session)).status, 403)
    assert.equal((await decide({ ...session, ...portal, origin: 'https://evil.example' })).status, 403)
    assert.equal((await decide({ ...session, ...portal, 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await decide(portal)).status, 401)
    assert.equal((await decide({ ...portal, authorization: `Bearer ${account.live}` })).status, 401)
    assert.equal((await decide({ ...session, ...portal }, new Visitor())).status, 404)
    const shown = await json(await visitor.get(`${page}/details`, { headers: portal }))
    assert.deepEqual(shown.body, {
      clientName: 'Test application',
      clientHost: null,
      redirectHost: '127.0.0.1:9',
      resource: `${url}/mcp`,
    })
    const back = await visitor.decide(page, account.token, { allow: false })
    assert.equal(back.searchParams.get('error'), 'access_denied')
    assert.equal((await decide({ ...session, ...portal })).status, 404)
  })

  it('an application that signs in counts among the 200 keys and connections that its user makes in a day', async (t) => {
    const user = await signUp(gateway)
    const redis = new Redis(gateway.services.redisUrl)
    t.after(() => redis.disconnect())
    const throttle = keys.throttle('credential', user.id)
    // The keys of its sign-up, and the keys that it made and revoked since.
    for (let made = await redis.zcard(throttle); made < 200; made += 1)
      await redis.zadd(throttle, Date.now(), randomUUID())
    const visitor = new Visitor()
    const page = await visitor.begin(authorizeUrl(url, app))
    const headers = {
      'content-type': 'application/json',
      'x-portal-request': '1',
      authorization: `Bearer ${user.token}`,
    }
    const refused = await json(
      await visitor.get(`${page}/decision`, { method: 'POST', headers, body: '{"allow":true}' }),
    )
    assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMIT_EXCEEDED'])
    assert.deepEqual(await connections(user), [])
    await redis.del(throttle)
    await visitor.decide(page, user.token)
    assert.deepEqual([(await connections(user)).length, await redis.zcard(throttle)], [1, 1])
  })

  it('an application that signs in for the address without a path may spell it with a slash', async () => {
    const caller = await signUp(gateway)
    const { access_token, refresh_token } = await (
      await signIn(url, caller.token, { app, resource: `${url}/` })
    ).tokens()
    assert.equal((await connections(caller))[0].resource, url)
    assert.equal((await call(access_token)).status, 200)
    assert.equal((await call((await json(await refresh(refresh_token))).body.access_token)).status, 200)
    assert.equal((await ask('/mcp', access_token)).status, 401)
  })

  it('an application that signs in without a scope, or with one of its own, may call like any other', async () => {
    const anyScope = await registerApp(url, undefined, { scope: 'claudeai' })
    for (const scope of [undefined, '', 'claudeai', 'offline_access', 'openid email profile']) {
      const verifier = codeVerifier()
      const address = authorizeUrl(url, anyScope, { code_challenge: codeChallenge(verifier), scope: scope ?? '' })
      if (scope === undefined) address.searchParams.delete('scope')
      const visitor = new Visitor()
      const back = await visitor.decide(await visitor.begin(address), account.token)
      const exchanged = await postForm(`${url}/oauth/token`, {
        grant_type: 'authorization_code',
        client_id: anyScope.clientId,
        redirect_uri: anyScope.redirectUri,
        code: back.searchParams.get('code') ?? assert.fail(`${scope}: ${back.href}`),
        code_verifier: verifier,
      })
      const { access_token, scope: granted } = (await json(exchanged)).body
      assert.equal(granted, 'call', scope)
      assert.equal((await ask('/mcp', access_token)).status, 200, scope)
    }
  })

  it('an application that signs in by a scheme of its own, beside addresses of the web and of this machine, is let in, and its user sees the scheme', async () => {
    const redirectUri = 'cursor://anysphere.cursor-mcp/oauth/callback'
    const redirects = [
      'https://www.cursor.com/agents/mcp/oauth/callback',
      'http://localhost:8787/callback',
      redirectUri,
    ]
    for (const type of [{}, { application_type: 'web' }]) {
      const editor = await registerApp(url, redirectUri, { redirect_uris: redirects, ...type })
      const visitor = new Visitor()
      const page = await visitor.begin(authorizeUrl(url, editor))
      const shown = await json(await visitor.get(`${page}/details`, { headers: { 'x-portal-request': '1' } }))
      assert.equal(shown.body.redirectHost, 'cursor://anysphere.cursor-mcp')
      const { access_token } = await (await signIn(url, account.token, { app: editor })).tokens()
      assert.equal((await ask('/mcp', access_token)).status, 200)
      // Nobody knows beforehand which port is free on its machine.
      const local = { ...editor, redirectUri: 'http://localhost:61234/callback' }
      assert.match(await new Visitor().begin(authorizeUrl(url, local)), /\/connect\//)
    }
  })

  it('an application that signs in described by a document on a private address is not fetched', async () => {
    let arrivals = 0
    const server = createServer((_request, response) => {
      arrivals += 1
      response.end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.on('connection', () => {
      arrivals += 1
    })
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::ffff:127.0.0.1]:${port}`]) {
      const clientId = `https://${host}/client.json`
      const response = await new Visitor().get(authorizeUrl(url, { clientId, redirectUri: app.redirectUri }))
      assert.equal(response.status, 400, host)
      assert.equal(response.headers.get('location'), null)
    }
    assert.equal(arrivals, 0)
    server.close()
  })

  it('an application that signs in is the official client of either generation: it signs in and calls', async () => {
    for (const generation of GENERATIONS) {
      const process = new SdkProcess(generation, { serverUrl: `${url}/mcp/dog-images`, userToken: account.token })
      await process.authorize()
      assert.deepEqual(await process.listTools(), ['dog_images_random', 'dog_images_breed'])
      assert.match(await process.callTool('dog_images_random'), /breeds/)
      assert.equal(process.signIns, 1)
    }
  })

  it('an application that signs in has the warning, where it goes back to and the buttons on the first screen, whatever its name is', async (t) => {
    const names = [
      `Agent API Gateway SECURITY NOTICE \u202e${'Your account is at risk. '.repeat(500)}`,
      '\ufdfd'.repeat(1_000),
      `a${'\u0301'.repeat(2_000)}\n`.repeat(2),
      '<h1>x</h1>\n'.repeat(500),
    ]
    const redirect = `https://${'a'.repeat(60)}.${'b'.repeat(60)}.evil.example/cb`
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page)
      for (const client_name of names) {
        const hostile = await registerApp(url, redirect, { client_name })
        await page.goto(authorizeUrl(url, hostile).href)
        for (const [width, height] of [
          [1_280, 720],
          [375, 667],
        ] as const) {
          await page.setViewportSize({ width, height })
          for (const shown of [
            page.getByText('Continue only if you started this'),
            page.locator('[data-redirect-host]'),
            page.getByRole('button', { name: 'Allow' }),
            page.getByRole('button', { name: 'Refuse' }),
          ]) {
            await shown.waitFor()
            const box = (await shown.boundingBox()) ?? assert.fail()
            const isInside = box.x >= 0 && box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height
            assert.ok(isInside, `${await shown.textContent()} at ${JSON.stringify(box)} of ${width} x ${height}`)
          }
        }
        assert.match((await page.locator('[data-redirect-host]').textContent()) ?? '', /evil\.example$/)
      }
    })
  })

  it('an application that signs in gets its consent in a browser, makes calls, and is listed and disconnected in the browser', async (t) => {
    const landed = Promise.withResolvers<URL>()
    const receiver = createServer((request, response) => {
      if (request.url?.startsWith('/callback')) landed.resolve(new URL(request.url, 'http://localhost'))
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>You can close this page.</p>')
    }).listen(0, '127.0.0.1')
    t.after(() => receiver.close().closeAllConnections())
    await once(receiver, 'listening')
    const redirectUri = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/callback`
    const mine = await registerApp(url, redirectUri)
    const verifier = codeVerifier()
    const address = authorizeUrl(url, mine, { code_challenge: codeChallenge(verifier) })
    await visitPortal(t, { gateway, browser, mayLoad: [new URL(redirectUri).origin] }, async (page) => {
      const { email } = await signUpIn(page, address.href)
      await page.getByText('Test application').waitFor()
      const consentPage = page.url()
      await page.getByText(email).waitFor()
      // A page of the account in another tab follows the change of the account.
      const accountTab = await page.context().newPage()
      await accountTab.goto(`${url}/account`)
      await accountTab.getByText(email).waitFor()
      await page.getByRole('button', { name: 'Use another account' }).click()
      await accountTab.waitForURL('**/login?next=%2Faccount')
      await accountTab.close()
      const newAccount = page.locator('form').filter({ has: page.getByRole('button', { name: 'Create account' }) })
      const otherEmail = `${randomUUID()}@example.com`
      await newAccount.getByLabel('Email').fill(otherEmail)
      await newAccount.getByLabel('Password').fill('a long password')
      await newAccount.getByRole('button', { name: 'Create account' }).click()
      await page.getByText(otherEmail).waitFor()
      assert.equal(page.url(), consentPage, 'the sign-in goes on')
      assert.equal(await page.locator('[data-redirect-host]').textContent(), new URL(redirectUri).host)
      await page.getByLabel('Only these').check()
      await page.getByLabel('Dog images').check()
      await page.getByLabel('Maximum calls a month').fill('5')
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.getByText('You can close this page.').waitFor()
      const { searchParams } = await landed.promise
      const response = await postForm(`${url}/oauth/token`, {
        grant_type: 'authorization_code',
        client_id: mine.clientId,
        redirect_uri: redirectUri,
        code: searchParams.get('code') ?? '',
        code_verifier: verifier,
      })
      const { access_token: token } = (await json(response)).body
      assert.equal((await ask('/mcp', token)).status, 200)
      await page.goto(consentPage)
      await page.getByText('There is no such sign-in, or it has expired.').waitFor()
      await page.goto(`${url}/account/connections`)
      const row = page.getByRole('row').filter({ hasText: 'Test application' })
      await row.getByText('dog-images; 5 a month').waitFor()
      await row.getByRole('button', { name: 'End Test application' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
      await page.getByText('No application is connected.').waitFor()
      assert.equal((await ask('/mcp', token, other)).status, 401)
    })
  })

  it('applications cannot register without bound, and the gateway stores only the members of a registration that it uses', async () => {
    const stored = await sql<{ sealed: Buffer }>(
      gateway,
      'select sealed from oauth_artifacts union all select sealed from oauth_clients',
    )
    assert.ok(stored.length > 5)
    for (const { sealed } of stored) assert.ok(!sealed.toString('latin1').includes('client_id'))
    const attempts = await Promise.all(
      Array.from({ length: 30 }, () =>
        registerApp(url).then(
          () => 201,
          (error: Error) => (/429/.test(error.message) ? 429 : error.message),
        ),
      ),
    )
    assert.ok(attempts.includes(429), String(attempts))
    assert.ok(attempts.filter((status) => status === 201).length < 20)
  })
})
