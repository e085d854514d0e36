import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type Account, type Answer, send, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import {
  authorizeUrl,
  codeChallenge,
  codeVerifier,
  postForm,
  registerApp,
  signIn,
  type Tokens,
  Visitor,
} from '../support/oauth-client.ts'
import { GENERATIONS, SdkProcess } from '../support/oauth-sdk.ts'
import { type Stage, startStage } from '../support/stage.ts'

/**
 * The requests of a client before its user agrees, in this order, and the answers that it needs.
 */
type Row = [
  method: 'GET' | 'POST' | 'OPTIONS',
  path: string,
  expected: { status: number; resource?: string; isServer?: true },
]

/** How a client signs in, as its users and the makers of servers have described it in public. */
interface Behaviour {
  name: string
  /** Path of the server as its user enters it. */
  server: string
  requests: Row[]
  registration: { redirect_uris: string[] } & Record<string, unknown>
  redirectUri: string
  /** Parameters of the sign-in beside the parameters of every client; `resource` is a path. */
  signIn: Record<string, string>
  /** Members of the token request and of the refresh beside the members of every client. */
  token: Record<string, string>
  refresh: Record<string, string>
}

const NONE = { token_endpoint_auth_method: 'none', response_types: ['code'] }
const GRANTS = ['authorization_code', 'refresh_token']
const SERVER = { status: 200, isServer: true } as const
const atMcp = { status: 200, resource: '/mcp' } as const

const CLIENTS: Behaviour[] = [
  {
    // taylorwilsdon/google_workspace_mcp#382: it requests all of these, even if the first answers
    // are enough.
    name: 'Claude Code',
    server: '/mcp',
    requests: [
      ['POST', '/mcp', { status: 401 }],
      ['GET', '/.well-known/oauth-authorization-server/mcp', SERVER],
      ['GET', '/.well-known/openid-configuration/mcp', SERVER],
      ['GET', '/mcp/.well-known/openid-configuration', SERVER],
      ['GET', '/.well-known/oauth-protected-resource/mcp', atMcp],
      ['GET', '/.well-known/oauth-protected-resource', { status: 200, resource: '' }],
      ['GET', '/.well-known/oauth-authorization-server', SERVER],
      ['GET', '/.well-known/openid-configuration', SERVER],
    ],
    registration: {
      ...{ ...NONE, client_name: 'Claude Code (gateway)', grant_types: GRANTS },
      redirect_uris: ['http://localhost:53682/callback'],
    },
    redirectUri: 'http://localhost:61000/callback',
    signIn: { scope: 'call offline_access', prompt: 'consent', resource: '/mcp' },
    token: { resource: '/mcp' },
    refresh: { resource: '/mcp' },
  },
  {
    // anthropics/claude-ai-mcp#367: it drops the path of the issuer. It registers a scope of its
    // own, and has a secret.
    name: 'claude.ai',
    server: '/mcp/dog-images',
    requests: [
      ['POST', '/mcp/dog-images', { status: 401 }],
      ['GET', '/.well-known/oauth-protected-resource/mcp/dog-images', { status: 200, resource: '/mcp/dog-images' }],
      ['GET', '/.well-known/oauth-authorization-server', SERVER],
    ],
    registration: {
      ...{ client_name: 'Claude', grant_types: GRANTS, response_types: ['code'], scope: 'claudeai' },
      redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
      token_endpoint_auth_method: 'client_secret_post',
    },
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    signIn: { scope: 'claudeai', resource: '/mcp/dog-images' },
    token: { resource: '/mcp/dog-images' },
    refresh: {},
  },
  {
    // kernel/kernel-mcp-server#91, automagik-dev/genie#320, Waishnav/devspace#44: root documents,
    // OpenID's among them.
    name: 'ChatGPT',
    server: '/mcp/',
    requests: [
      ['POST', '/mcp/', { status: 401 }],
      ['GET', '/.well-known/oauth-protected-resource/mcp/', { status: 200, resource: '/mcp/' }],
      ['GET', '/.well-known/oauth-protected-resource', { status: 200, resource: '' }],
      ['GET', '/.well-known/openid-configuration', SERVER],
      ['GET', '/.well-known/oauth-authorization-server', SERVER],
    ],
    registration: {
      ...{ ...NONE, client_name: 'ChatGPT', grant_types: GRANTS },
      redirect_uris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
    },
    redirectUri: 'https://chatgpt.com/connector_platform_oauth_redirect',
    signIn: { scope: 'openid email call', resource: '/mcp/', prompt: 'select_account', nonce: 'n' },
    token: { resource: '/mcp/' },
    refresh: { resource: '/mcp', scope: 'openid email call' },
  },
  {
    // gamedevpl/www.gamedev.pl#483, erp-mafia/accounted#2225: three redirect addresses in one
    // registration.
    name: 'Cursor',
    server: '/mcp',
    requests: [
      ['POST', '/mcp', { status: 401 }],
      ['GET', '/.well-known/oauth-protected-resource/mcp', atMcp],
      ['GET', '/.well-known/oauth-protected-resource', { status: 200, resource: '' }],
      ['GET', '/.well-known/oauth-authorization-server', SERVER],
    ],
    registration: {
      ...{ ...NONE, client_name: 'Cursor', grant_types: GRANTS },
      redirect_uris: [
        'cursor://anysphere.cursor-mcp/oauth/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
        'http://localhost:8787/callback',
      ],
    },
    redirectUri: 'cursor://anysphere.cursor-mcp/oauth/callback',
    signIn: { scope: 'call offline_access' },
    token: {},
    refresh: {},
  },
  {
    // microsoft/vscode#273655, contextstream/mcp-server#57, containers/kubernetes-mcp-server#258: a
    // query in the address, grant types that do not exist, every scope of the metadata, and the
    // same scopes in a refresh.
    name: 'VS Code',
    server: '/mcp?apis=dog-images',
    requests: [
      ['POST', '/mcp?apis=dog-images', { status: 401 }],
      [
        'GET',
        '/.well-known/oauth-protected-resource/mcp?apis=dog-images',
        { status: 200, resource: '/mcp?apis=dog-images' },
      ],
      ['GET', '/.well-known/oauth-protected-resource/mcp', atMcp],
      ['GET', '/.well-known/oauth-authorization-server', SERVER],
    ],
    registration: {
      ...{ ...NONE, client_name: 'Visual Studio Code', client_uri: 'https://code.visualstudio.com' },
      grant_types: [...GRANTS, 'urn:ietf:params:oauth:grant-type:device_code'],
      redirect_uris: [
        'https://insiders.vscode.dev/redirect',
        'https://vscode.dev/redirect',
        'http://127.0.0.1/',
        'http://127.0.0.1:33418/',
      ],
      application_type: 'native',
    },
    redirectUri: 'http://127.0.0.1:33418/',
    signIn: { scope: 'call offline_access openid', resource: '/mcp?apis=dog-images' },
    token: { resource: '/mcp?apis=dog-images' },
    refresh: { scope: 'call offline_access openid' },
  },
]

describe('a client that signs in', () => {
  let stage: Stage
  let gateway: Gateway
  let account: Account
  let url: string

  before(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    stage = await startStage({
      isInProcess: true,
      caps: { 'dog-images': 'concurrency=20,1000/1' },
      environment: { PORT: String(port), BASE_URL: url },
    })
    ;({ gateway, account } = stage)
  })
  after(() => stage.stop())

  const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const json = async (response: Response) => JSON.parse(await response.text())
  const absolute = ({ resource, ...others }: Record<string, string>) =>
    resource === undefined ? others : { ...others, resource: url + resource }

  /**
   * Posts JSON in pieces, without its length, to a path as it is written, from any address of this
   * machine.
   */
  const postPieces = (
    path: string,
    pieces: string[],
    { localAddress = '127.0.0.1', ...more }: { localAddress?: string; [header: string]: string | undefined } = {},
  ): Promise<[status: number, body: string]> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(url)
      const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked', ...more }
      const request = httpRequest({ hostname, port, path, localAddress, method: 'POST', headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        response.on('end', () => resolve([response.statusCode ?? 0, text]))
      })
      request.on('error', reject)
      for (const piece of pieces) request.write(piece)
      request.end()
    })
  /** Status of a message to MCP with an access token, at an address as it is written. */
  const statusAt = async (path: string, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
    const [status] = await postPieces(path, [JSON.stringify(listTools)], headers)
    return status
  }

  for (const client of CLIENTS) {
    it(`a client that signs in as ${client.name} does finds every document that it asks for, registers, calls and refreshes`, async () => {
      const root = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).text()
      for (const [method, path, { status, resource, isServer }] of client.requests) {
        const body = method === 'POST' ? { body: JSON.stringify(listTools) } : {}
        const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
        const response = await fetch(url + path, { method, headers, ...body })
        assert.equal(response.status, status, path)
        const text = await response.text()
        if (isServer) assert.equal(text, root, path)
        if (resource !== undefined) assert.equal(JSON.parse(text).resource, url + resource, path)
        if (status !== 401) continue
        const [, metadata = ''] =
          /resource_metadata="([^"]+)"/.exec(response.headers.get('www-authenticate') ?? '') ?? []
        assert.equal((await json(await fetch(metadata))).resource, url + client.server)
      }
      const registered = await fetch(`${url}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(client.registration),
      })
      assert.equal(registered.status, 201)
      const { client_id: clientId, client_secret: secret } = await json(registered)
      const proof = { client_id: clientId, ...(secret && { client_secret: secret }) }
      const verifier = codeVerifier()
      const address = authorizeUrl(url, { clientId, redirectUri: client.redirectUri }, {})
      address.search = String(
        new URLSearchParams({
          ...{ response_type: 'code', client_id: clientId, redirect_uri: client.redirectUri, state: randomUUID() },
          ...{ code_challenge_method: 'S256', code_challenge: codeChallenge(verifier), ...absolute(client.signIn) },
        }),
      )
      const visitor = new Visitor()
      const back = await visitor.decide(await visitor.begin(address), account.token)
      const exchanged = await postForm(`${url}/oauth/token`, {
        ...{ grant_type: 'authorization_code', redirect_uri: client.redirectUri, code_verifier: verifier, ...proof },
        ...{ code: back.searchParams.get('code') ?? assert.fail(back.href), ...absolute(client.token) },
      })
      const tokens: Tokens & { scope: string } = await json(exchanged)
      assert.equal(tokens.scope, 'call', JSON.stringify(tokens))
      const refreshed = await postForm(`${url}/oauth/token`, {
        ...{ grant_type: 'refresh_token', refresh_token: tokens.refresh_token, ...proof, ...absolute(client.refresh) },
      })
      const renewed: Tokens & { scope: string } = await json(refreshed)
      assert.equal(renewed.scope, 'call', JSON.stringify(renewed))
      for (const { access_token: token } of [tokens, renewed]) assert.equal(await statusAt(client.server, token), 200)
    })
  }

  it('a client that signs in finds the document of the server under every address that clients construct, and under no other address', async () => {
    const root = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).text()
    assert.equal(JSON.parse(root).issuer, url)
    const suffixes = ['', '/', '/mcp', '/mcp/', '/mcp/weather', '/mcp/weather/', '/%6dcp', '?x=1', '/mcp?apis=weather']
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      const paths = suffixes.map((suffix) => `/.well-known/${name}${suffix}`)
      for (const path of ['/mcp', '/mcp/weather'])
        for (const end of ['', '/']) paths.push(`${path}/.well-known/${name}${end}`)
      for (const path of paths) {
        const response = await fetch(url + path)
        assert.deepEqual([response.status, await response.text()], [200, root], path)
      }
      for (const path of ['/nothing', '/mcp/nothing', '/mcp/weather/x', '/v1'])
        assert.equal((await fetch(`${url}/.well-known/${name}${path}`)).status, 404, path)
      assert.equal((await fetch(`${url}/mcp/nothing/.well-known/${name}`)).status, 404)
    }
  })

  it('a client that signs in finds each spelling of a resource described as it spells it', async () => {
    for (const spelled of ['', '/', '/mcp', '/mcp/', '/mcp/weather', '/mcp/weather/', '/mcp?apis=weather', '/%6Dcp/']) {
      const response = await fetch(`${url}/.well-known/oauth-protected-resource${spelled}`)
      const described = await json(response)
      assert.deepEqual([response.status, described.resource], [200, url + spelled], spelled)
      assert.deepEqual(described.authorization_servers, [url])
    }
    const before = await json(await fetch(`${url}/mcp/weather/.well-known/oauth-protected-resource`))
    assert.equal(before.resource, `${url}/mcp/weather`)
    for (const path of ['/nothing', '/mcp/nothing', '/mcp/weather/x'])
      assert.equal((await fetch(`${url}/.well-known/oauth-protected-resource${path}`)).status, 404, path)
  })

  it('a client that signs in may spell a resource anew at each step', async () => {
    const app = await registerApp(url)
    const upper = url.replace('http', 'HTTP')
    const spellings = ['/mcp', '/mcp/', '/mcp?apis=weather', '/%6dcp', '/x/../mcp'].map((path) => upper + path)
    const { exchange, tokens } = await signIn(url, account.token, { app, resource: spellings[4] ?? '' })
    let { refresh_token: newest, access_token: token } = await tokens()
    for (const resource of [undefined, ...spellings]) {
      const form = { grant_type: 'refresh_token', client_id: app.clientId, refresh_token: newest }
      const response = await postForm(`${url}/oauth/token`, { ...form, ...(resource !== undefined && { resource }) })
      const renewed = await json(response)
      assert.equal(response.status, 200, `${resource} ${JSON.stringify(renewed)}`)
      ;({ refresh_token: newest, access_token: token } = renewed)
    }
    for (const path of ['/mcp', '/mcp/', '/%6dcp', '/mcp/?apis=weather', '/mcp/.', '/x/%2e%2e/mcp', `${url}/mcp/`])
      assert.equal(await statusAt(path, token), 200, path)
    assert.equal(await statusAt('/mcp/weather/', token), 401)
    const other = {
      grant_type: 'refresh_token',
      client_id: app.clientId,
      refresh_token: newest,
      resource: `${url}/mcp/weather`,
    }
    assert.equal((await json(await postForm(`${url}/oauth/token`, other))).error, 'invalid_target')
    const { connections } = (await send(gateway, '/v1/connections', { token: account.token })).body
    assert.ok(connections.some(({ resource }: { resource: string }) => resource === `${url}/mcp`))
    assert.equal((await json(await exchange())).error, 'invalid_grant')
  })

  it('a client that signs in from a page of another origin may call every endpoint of the flow, and read its refusals', async () => {
    const origin = 'https://app.example'
    const asked = 'content-type, mcp-protocol-version'
    const mayRead = ({ headers }: Response) => ['*', origin].includes(headers.get('access-control-allow-origin') ?? '')
    const endpoints: [method: string, path: string][] = [
      ['GET', '/.well-known/oauth-protected-resource'],
      ['GET', '/.well-known/oauth-protected-resource/mcp'],
      ['GET', '/.well-known/oauth-authorization-server'],
      ['GET', '/.well-known/oauth-authorization-server/mcp/weather'],
      ['GET', '/.well-known/openid-configuration'],
      ['GET', '/mcp/.well-known/openid-configuration'],
      ['GET', '/oauth/jwks'],
      ['POST', '/oauth/register'],
      ['POST', '/oauth/token'],
      ['POST', '/oauth/revoke'],
    ]
    for (const [method, path] of endpoints) {
      const preflight = await fetch(url + path, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': asked },
      })
      const answered = ['allow-origin', 'allow-methods', 'allow-headers', 'max-age']
      assert.deepEqual(
        [preflight.status, ...answered.map((name) => preflight.headers.get(`access-control-${name}`))],
        [204, '*', method, asked, '3600'],
        path,
      )
      const response = await fetch(url + path, { method, headers: { origin } })
      assert.ok(mayRead(response), path)
      await response.text()
    }
    const large = await fetch(`${url}/oauth/register`, {
      method: 'POST',
      headers: { origin },
      body: 'x'.repeat(17_000),
    })
    assert.deepEqual([large.status, mayRead(large)], [413, true])
  })

  it('a client that signs in may send its registration without a length, and one above 16 KiB is refused while it arrives', async () => {
    const registration = JSON.stringify({
      redirect_uris: ['http://127.0.0.1:9/callback'],
      token_endpoint_auth_method: 'none',
    })
    const [status, body] = await postPieces('/oauth/register', [registration.slice(0, 20), registration.slice(20)])
    assert.equal(status, 201, body)
    const name = 'x'.repeat(8_000)
    const [large, refusal] = await postPieces('/oauth/register', [`{"client_name":"${name}`, name, name, '"}'])
    assert.deepEqual([large, JSON.parse(refusal).code], [413, 'PAYLOAD_TOO_LARGE'])
    assert.match(refusal, /16 KiB/)
  })

  it('a client that signs in may register with any JSON: each body is refused with its own error, or accepted without unused members', async () => {
    let registrations = 0
    const register = async (body: string): Promise<[status: number, answer: Record<string, unknown>]> => {
      registrations += 1
      const [status, text] = await postPieces('/oauth/register', [body], { localAddress: `127.0.1.${registrations}` })
      return [status, JSON.parse(text)]
    }
    const uris = '"redirect_uris":["https://a.example/callback"],"token_endpoint_auth_method":"none"'
    for (const body of [
      ...['', '[]', 'null', '5', '"text"', '{', '{}', '{"a":1}{}', '[['.repeat(5_000), '\ufeff{}'],
      ...['5', 'null', '{}', '"https://a.example"', '[5]', '[{"toString":1}]', '[["https://a.example"]]'].map(
        (value) => `{"redirect_uris":${value}}`,
      ),
      ...[
        '"client_uri":{"toString":1}',
        '"client_name":{"a":1}',
        '"client_name":9007199254740993',
        '"grant_types":[{}]',
        '"response_types":{"length":1}',
        '"application_type":[]',
        '"software_id":[]',
        '"software_id":9007199254740993',
      ].map((member) => `{${uris},${member}}`),
    ]) {
      const [status, answer] = await register(body)
      assert.equal(status, 400, `${body.slice(0, 80)} ${JSON.stringify(answer)}`)
      assert.match(String(answer.error), /^invalid_(request|redirect_uri|client_metadata)$/, body.slice(0, 80))
    }
    for (const member of [
      '"client_id":"mine","client_id_issued_at":9007199254740993,"client_secret":"mine","client_secret_expires_at":1e400',
      '"default_max_age":9007199254740993,"contacts":[{"toString":1}]',
      '"__proto__":{"client_name":"Claude"},"constructor":{"prototype":{"client_name":"Claude"}}',
    ]) {
      const [status, answer] = await register(`{${uris},${member}}`)
      assert.equal(status, 201, `${member} ${JSON.stringify(answer)}`)
      assert.notEqual(answer.client_id, 'mine')
      assert.ok(Math.abs(Number(answer.client_id_issued_at) - Date.now() / 1_000) < 600)
      for (const name of ['client_secret', 'default_max_age', 'contacts', 'client_name', 'constructor'])
        assert.ok(!Object.hasOwn(answer, name), `${name} ${JSON.stringify(answer)}`)
    }
    assert.ok(!('client_name' in {}))
  })

  it('a client that signs in reads with its token what a call would meet now: by tools, and in the catalog with a token for calls', async () => {
    const app = await registerApp(url)
    const decision = { allow: true, apis: ['dog-images'], perMonth: 5 }
    /** Answers leave `now` out if Redis answers late, as it may on a busy machine. */
    const untilNow = async <T>(read: () => Promise<T>, lacksNow: (answer: T) => boolean): Promise<T> => {
      let answer = await read()
      await until(async () => {
        if (!lacksNow(answer)) return true
        answer = await read()
        return false
      })
      return answer
    }
    const ask = (name: string, given: object, token: string) =>
      untilNow(
        async () => {
          const { body } = await send(gateway, '/mcp', {
            headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
            body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } },
          })
          return body.result.structuredContent
        },
        ({ now }) => now === undefined,
      )
    const inCatalog = (slug: string, token: string): Promise<Answer> =>
      untilNow(
        () => send(gateway, `/v1/catalog/${slug}`, { headers: { authorization: `Bearer ${token}` } }),
        ({ status, body }) => status === 200 && body.now === undefined,
      )

    const forTools = (await (await signIn(url, account.token, { app, decision })).tokens()).access_token
    const described = await ask('describe_api', { api: 'dog-images' }, forTools)
    assert.deepEqual([described.now.limitedBy, described.now.waitMs, described.now.monthLeft], [null, 0, 5])
    assert.equal((await ask('describe_api', { api: 'currency' }, forTools)).now.limitedBy, 'credential')
    const found = await ask('search_apis', {}, forTools)
    assert.deepEqual([found.total, found.apis[0].api, found.now.monthLeft], [1, 'dog-images', 5])
    const refused = await inCatalog('dog-images', forTools)
    assert.deepEqual([refused.status, refused.body.code], [401, 'INVALID_TOKEN'])

    const forCalls = (await (await signIn(url, account.token, { app, decision, resource: url })).tokens()).access_token
    const { body, headers } = await inCatalog('dog-images', forCalls)
    assert.deepEqual([body.now.limitedBy, body.now.waitMs, body.now.monthLeft], [null, 0, 5])
    assert.equal(headers.get('cache-control'), 'private, no-store')
    assert.equal((await inCatalog('currency', forCalls)).body.now.limitedBy, 'credential')
    for (const query of ['', '?q=dog']) {
      const listed = await send(gateway, `/v1/catalog${query}`, { headers: { authorization: `Bearer ${forCalls}` } })
      assert.deepEqual([listed.body.total, listed.body.data[0].api_name], [1, 'dog-images'], query)
    }

    for (const token of ['x'.repeat(43), `${forCalls.slice(1)}x`]) {
      const wrong = await inCatalog('dog-images', token)
      assert.deepEqual([wrong.status, wrong.body.code, wrong.body.now], [401, 'INVALID_TOKEN', undefined])
    }
  })

  it('a client that signs in again after its registration was deleted for lack of use registers anew', async () => {
    for (const generation of GENERATIONS) {
      const process = new SdkProcess(generation, { serverUrl: `${url}/mcp`, userToken: account.token })
      await process.authorize()
      const { client_id: before } = process.stored.get('client') as { client_id: string }
      const { refresh_token } = process.tokens
      await sql(gateway, 'delete from oauth_clients where id = $1', [before])
      for (const path of ['/oauth/token', '/oauth/revoke']) {
        const form = { grant_type: 'refresh_token', client_id: before, refresh_token, token: refresh_token }
        const refused = await postForm(url + path, form)
        assert.deepEqual([refused.status, (await json(refused)).error], [401, 'invalid_client'], path)
      }
      const page = await fetch(authorizeUrl(url, { clientId: before, redirectUri: 'http://127.0.0.1:9/callback' }))
      assert.equal(page.status, 400)
      assert.match(await page.text(), /remove this gateway from the application and add it again/)
      await process.authorize()
      assert.notEqual((process.stored.get('client') as { client_id: string }).client_id, before)
      assert.ok((await process.listTools()).includes('search_apis'))
    }
  })

  it('a client that signs in and refreshes with any scope gets the only scope of the gateway', async () => {
    const app = await registerApp(url)
    let { refresh_token: newest } = await (await signIn(url, account.token, { app })).tokens()
    for (const scope of ['call', 'call offline_access openid', 'claudeai', 'openid', 'admin', '']) {
      const form = { grant_type: 'refresh_token', client_id: app.clientId, refresh_token: newest, scope }
      const response = await postForm(`${url}/oauth/token`, form)
      const renewed = await json(response)
      assert.deepEqual([response.status, renewed.scope], [200, 'call'], `${scope} ${JSON.stringify(renewed)}`)
      newest = renewed.refresh_token
    }
  })

  it('a client that signs in may ask for a choice of account and name authentication classes; other prompts are refused', async () => {
    const app = await registerApp(url)
    for (const given of [
      { prompt: 'select_account' },
      { prompt: 'login select_account consent' },
      { acr_values: 'urn:mace:incommon:iap:silver' },
      { scope: 'openid call', acr_values: 'phr', max_age: '0' },
      { nonce: 'n', max_age: '60', claims: '{}' },
    ] as Record<string, string>[])
      assert.match(await new Visitor().begin(authorizeUrl(url, app, given)), /\/connect\//, JSON.stringify(given))
    for (const prompt of ['unknown', 'none select_account']) {
      const response = await new Visitor().get(authorizeUrl(url, app, { prompt }))
      assert.doesNotMatch(response.headers.get('location') ?? '', /\/connect\//, prompt)
    }
  })
})
