import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { loadConfig } from '../../src/config.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { type AuthorizationDeps, createAuthorizationServer } from '../../src/oauth/authorization-server.ts'
import { openMetadataFetch } from '../../src/oauth/metadata-fetch.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { testSecrets } from '../support/gateway.ts'
import { authorizeUrl } from '../support/oauth-client.ts'
import { type Services, startServices } from '../support/services.ts'

async function listen(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const CLIENT = 'https://agent.example/client.json'
const REDIRECT = 'https://agent.example/callback'

describe('the authorization server', () => {
  let services: Services
  let db: Db
  /** A database that cannot be reached, and an authorization server on it. */
  let lost: Db
  let away: { server: Server; url: string }
  let redis: RedisConnection
  let gateway: { server: Server; url: string }
  let documents: { server: Server; url: string }
  let answer: RequestListener = (_request, response) => void response.end()
  let fetched = 0
  const paths = new Set<string | undefined>()
  let mayFetch = true

  before(async () => {
    services = await startServices()
    documents = await listen((request, response) => {
      fetched += 1
      paths.add(request.url)
      answer(request, response)
    })
    let handle: RequestListener = () => undefined
    gateway = await listen((request, response) => handle(request, response))
    const config = loadConfig({
      ...testSecrets(),
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      BASE_URL: gateway.url,
      DATA_DIR: services.folder,
      LOG_LEVEL: 'silent',
    })
    const log = createLog(config.log, 'web')
    db = openDatabase(config.databaseUrl, log)
    redis = openRedis(config.redisUrls, 'producer', log)
    const deps: AuthorizationDeps = {
      config,
      db,
      redis,
      log,
      catalog: await loadCatalog(new Map()),
      // A loopback server plays the document's host. The real fetch would not connect to it.
      fetch: (address, { redirect } = {}) =>
        fetch(String(address).replace('https://agent.example', documents.url), redirect ? { redirect } : {}),
      beginFetch: async () => (mayFetch ? () => undefined : undefined),
      errorPage: (title, text) => `${title}: ${text}`,
    }
    handle = createAuthorizationServer(deps).callback()
    lost = openDatabase('postgres://127.0.0.1:9/none', log)
    away = await listen(createAuthorizationServer({ ...deps, db: lost }).callback())
  })
  after(async () => {
    gateway.server.close()
    away.server.close()
    await lost.destroy()
    documents.server.close()
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  })

  const describedAs = (document: object, status = 200, headers: Record<string, string> = {}): void => {
    answer = (_request, response) =>
      void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(document))
  }
  const ask = (clientId: string, redirectUri = REDIRECT) =>
    fetch(authorizeUrl(gateway.url, { clientId, redirectUri }), { redirect: 'manual' })
  const document = (clientId: string) => ({
    client_id: clientId,
    client_name: 'Agent',
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
  })

  it('the authorization server shows the consent page of an application that a document describes, and reads the document once', async () => {
    describedAs(document(CLIENT))
    fetched = 0
    for (let time = 0; time < 2; time += 1) {
      const response = await ask(CLIENT)
      assert.equal(response.status, 303, await response.text())
      assert.match(response.headers.get('location') ?? '', /\/connect\/[\w-]+$/)
    }
    assert.equal(fetched, 1)
    assert.equal((await ask(CLIENT, 'https://evil.example/callback')).status, 400)
  })

  it('the authorization server refuses an application if its document redirects, names another client, is too large or is fetched too often', async () => {
    const refused = async (name: string, status = 400) => {
      const response = await ask(`https://agent.example/${name}.json`)
      assert.equal(response.status, status, name)
      assert.equal(response.headers.get('retry-after'), status === 503 ? '30' : null)
      assert.equal(response.headers.get('location'), null)
    }
    describedAs({}, 302, { location: '/elsewhere' })
    await refused('redirects')
    assert.ok(!paths.has('/elsewhere'), 'a redirect is not followed')
    describedAs(document(CLIENT))
    await refused('another')
    describedAs({ ...document('https://agent.example/large.json'), padding: 'x'.repeat(6_000) })
    await refused('large')
    describedAs(document('https://agent.example/often.json'))
    mayFetch = false
    fetched = 0
    await refused('often', 503)
    assert.equal(fetched, 0)
    mayFetch = true
  })

  it('the authorization server answers an application that a document describes with 503 while the database is unreachable', async () => {
    const form = { grant_type: 'refresh_token', client_id: 'any', refresh_token: 'any' }
    const response = await fetch(`${away.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    assert.equal(response.status, 503)
    assert.equal(response.headers.get('retry-after'), '2')
    assert.equal(JSON.parse(await response.text()).error, 'temporarily_unavailable')
  })

  it('the authorization server says that an application may try again if its document cannot be read now', async () => {
    const renew = async (name: string) => {
      const form = {
        grant_type: 'refresh_token',
        client_id: `https://agent.example/${name}.json`,
        refresh_token: 'any',
      }
      const response = await fetch(`${gateway.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
      return [response.status, response.headers.get('retry-after'), JSON.parse(await response.text()).error]
    }
    describedAs({}, 502)
    assert.deepEqual(await renew('broken'), [503, '30', 'temporarily_unavailable'])
    describedAs(document('https://agent.example/waits.json'))
    mayFetch = false
    assert.deepEqual(await renew('waits'), [503, '30', 'temporarily_unavailable'])
    mayFetch = true
    assert.deepEqual(await renew('waits'), [400, null, 'invalid_grant'])
    describedAs(document('https://agent.example/other.json'))
    assert.equal((await renew('wrong'))[0], 400)
    describedAs({}, 502)
    const page = await (await ask('https://agent.example/again.json')).text()
    assert.match(page, /The document that describes the application cannot be read now\. Try again later\./)
    assert.doesNotMatch(page, /add it again/)
  })

  it('the authorization server says on its page what a user can do about an application that it does not know', async () => {
    const page = await (await ask('never-registered')).text()
    assert.match(page, /remove this gateway from the application and add it again/)
  })

  const register = async (redirects: unknown, more: object = {}) => {
    const response = await fetch(`${gateway.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'Agent',
        redirect_uris: redirects,
        token_endpoint_auth_method: 'none',
        ...more,
      }),
    })
    const body = JSON.parse(await response.text())
    return { status: response.status, error: body.error, body }
  }

  it('the authorization server refuses a registration with 400 if a redirect address is not allowed, or is not an address', async () => {
    const refused = [
      ['nonsense'],
      [''],
      [7],
      [null],
      'https://agent.example/callback',
      { 0: 'https://agent.example/callback' },
      ['http://agent.example/callback'],
      ['javascript:alert(1)'],
      ['data:text/html,x', 'cursor://agent/callback'],
    ]
    for (const redirects of refused) {
      const { status, error } = await register(redirects)
      assert.equal(status, 400, JSON.stringify(redirects))
      assert.match(error, /^invalid_(redirect_uri|client_metadata)$/, JSON.stringify(redirects))
    }
    const taken = [
      ['https://localhost:8443/callback', 'http://localhost:8080/callback'],
      ['com.agent.example:/callback'],
      ['vscode://agent.example/callback', 'http://127.0.0.1/'],
    ]
    for (const redirects of taken) assert.equal((await register(redirects)).status, 201, JSON.stringify(redirects))
  })

  it('the authorization server accepts a registration with scopes of other services', async () => {
    for (const scope of ['claudeai', 'openid email profile', 'call', '', undefined]) {
      assert.equal((await register([REDIRECT], { scope })).status, 201, scope)
    }
  })

  it('the authorization server accepts a registration with unsupported ways of signing in beside a supported way, and says which it may use', async () => {
    const { status, body } = await register([REDIRECT], {
      grant_types: [
        'authorization_code',
        'refresh_token',
        'client_credentials',
        'implicit',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
      response_types: ['code', 'token'],
    })
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual([body.grant_types, body.response_types], [['authorization_code', 'refresh_token'], ['code']])
    for (const none of [
      { grant_types: ['client_credentials'] },
      { response_types: ['token'] },
      { grant_types: 'code' },
    ]) {
      const refused = await register([REDIRECT], none)
      assert.deepEqual([refused.status, refused.error], [400, 'invalid_client_metadata'], JSON.stringify(none))
    }
  })

  it('the authorization server accepts a registration with contacts, or with a signature algorithm of tokens that it never issues', async () => {
    const { status, body } = await register([REDIRECT], {
      contacts: ['https://agent.example/help', 'Agent team'],
      id_token_signed_response_alg: 'RS256',
    })
    assert.equal(status, 201, JSON.stringify(body))
  })

  it('the authorization server treats empty members of a registration as absent', async () => {
    for (const empty of ['', null]) {
      const about = { client_uri: empty, logo_uri: empty, policy_uri: empty, tos_uri: empty }
      const { status, body } = await register([REDIRECT], about)
      assert.equal(status, 201, JSON.stringify(body))
      assert.equal(body.client_uri ?? undefined, undefined)
    }
    // Programs write this if they send every member they know.
    const nulls = { scope: null, contacts: null, jwks: null, token_endpoint_auth_method: null, initiate_login_uri: '' }
    assert.equal((await register([REDIRECT], nulls)).status, 201)
    assert.equal((await register(null)).status, 400)
    for (const client_uri of ['nonsense', 'javascript:alert(1)', 7]) {
      assert.equal((await register([REDIRECT], { client_uri })).status, 400, `${client_uri}`)
    }
  })

  it('the authorization server fetches documents of applications only from public addresses', async () => {
    const { fetch: guarded } = openMetadataFetch()
    fetched = 0
    for (const address of [documents.url, documents.url.replace('127.0.0.1', 'localhost'), 'http://169.254.169.254/']) {
      const error = await guarded(address).then(
        () => undefined,
        (cause: Error) => cause,
      )
      assert.equal((error?.cause as { code?: string } | undefined)?.code, 'BLOCKED_ADDRESS', address)
    }
    assert.equal(fetched, 0)
  })
})
