import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { loadCatalog, loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { viewHealth } from '../../src/health/health-view.ts'
import { apiStateOf } from '../../src/mcp/describe-api.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { MODERN, modernMessage, withMcpClient } from '../support/mcp-client.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const THREE = ['sports-scores', 'currency', 'trivia']

// biome-ignore lint/suspicious/noExplicitAny: results of tools are what the tests check
type Result = any

describe('the MCP servers', () => {
  let gateway: Gateway
  let account: Account
  let upstreams: Map<string, Upstream>
  let upstream: UpstreamServer

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":50}}',
        ...upstream.environment('mock-data', 'currency'),
      },
    })
    account = await signUp(gateway)
    upstreams = await loadUpstreams()
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  async function withClient<T>(
    path: string,
    headers: Record<string, string>,
    use: (client: Client) => Promise<T>,
  ): Promise<T> {
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(path, gateway.url), { requestInit: { headers } })
    // The class declares what may be undefined in another form than the interface it implements.
    await client.connect(transport as Parameters<Client['connect']>[0])
    try {
      return await use(client)
    } finally {
      await client.close()
    }
  }
  const withKey = () => ({ 'x-api-key': account.test })
  const initialize = (protocolVersion: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  })
  const accept = { accept: 'application/json, text/event-stream' }

  it('the MCP servers of all APIs finds, describes and calls every endpoint of three APIs', async () => {
    await withClient('/mcp', withKey(), async (client) => {
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['search_apis', 'describe_api', 'call_api', 'call_apis'],
      )
      for (const tool of tools) assert.equal(tool.annotations?.readOnlyHint, true)
      for (const slug of THREE) {
        const found: Result = await client.callTool({ name: 'search_apis', arguments: { query: slug } })
        assert.equal(found.structuredContent.apis[0].api, slug)
        const described: Result = await client.callTool({ name: 'describe_api', arguments: { api: slug } })
        const { endpoints } = described.structuredContent
        assert.equal(endpoints.length, Object.keys(upstreams.get(slug)?.endpoints ?? {}).length)
        for (const { path, example } of endpoints) {
          const input = { api: slug, endpoint: path, parameters: example.parameters }
          const called: Result = await client.callTool({ name: 'call_api', arguments: input })
          assert.equal(called.isError, undefined, JSON.stringify(called))
          const recorded = upstreams.get(slug)?.endpoints[path]?.example.data
          assert.deepEqual(called.structuredContent.data, JSON.parse(JSON.stringify(recorded)))
        }
      }
    })
  })

  it('the MCP servers describe any API, and any endpoint of it, in at most 8 KB, with its state, its limits and its terms', async () => {
    await withClient('/mcp', withKey(), async (client) => {
      for (const [slug, { endpoints }] of upstreams) {
        for (const endpoint of [undefined, ...Object.keys(endpoints)]) {
          const input = { api: slug, ...(endpoint === undefined ? {} : { endpoint }) }
          const described: Result = await client.callTool({ name: 'describe_api', arguments: input })
          assert.ok(JSON.stringify(described).length <= 8_192, `${slug} ${JSON.stringify(described).length}`)
          const { endpoints: listed } = described.structuredContent
          assert.equal(listed.length, endpoint === undefined ? Object.keys(endpoints).length : 1)
        }
      }
      const weather: Result = await client.callTool({ name: 'describe_api', arguments: { api: 'weather' } })
      const { status, within_your_plan, source_limits, terms, endpoints } = weather.structuredContent
      assert.deepEqual([status, within_your_plan], ['Not checked', true])
      assert.match(source_limits, /^600 per minute/)
      assert.match(terms, /https:\/\/open-meteo\.com\/en\/terms$/)
      assert.match(endpoints[0].data, /is_day: number \| null/)
      assert.match(endpoints[0].cache, /^Cached 5 minutes/)
      const news: Result = await client.callTool({ name: 'describe_api', arguments: { api: 'news' } })
      assert.deepEqual([news.structuredContent.status, news.structuredContent.within_your_plan], ['Not enabled', false])
      assert.match(news.structuredContent.meanwhile, /^The operator has not enabled this API: live calls are refused/)
    })
  })

  it('the MCP servers say of an API that is down by its score alone that live calls go through', async () => {
    const api = (await loadCatalog(new Map())).get('weather') ?? assert.fail()
    const down = viewHealth({ state: 'Down', open: '0', since: '1', cause: 'score' }, Date.now())
    const observer = {
      health: { of: () => down },
      tier: 'developer',
      allowedApis: null,
      providerKeys: new Map(),
    } as const
    const { status, meanwhile } = apiStateOf(api, observer)
    assert.equal(status, 'Down')
    assert.match(meanwhile ?? '', /^Live calls are still sent to the source, but many of them fail/)
  })

  it('the MCP servers and the catalog state what would happen to a call with the credential now, and this counts against no limit', async () => {
    upstream.play('currency', () => upstreams.get('currency')?.endpoints['/latest']?.example.response)
    const caller = await signUp(gateway)
    const fresh = { waitMs: 0, limitedBy: null, minuteLeft: 1_000, inFlightLeft: 50, health: 'Healthy' }
    const inCatalog = async (slug: string, credential: Record<string, string>) =>
      await send(gateway, `/v1/catalog/${slug}`, { headers: credential })
    const byMcp = async (api: string, key: string) =>
      await withClient('/mcp', { 'x-api-key': key }, async (client) => {
        const { structuredContent }: Result = await client.callTool({ name: 'describe_api', arguments: { api } })
        return structuredContent.now
      })
    const bearer = { authorization: `Bearer ${caller.token}` }
    for (const credential of [{ 'x-api-key': caller.live }, bearer]) {
      const { body, headers } = await inCatalog('dog-images', credential)
      assert.deepEqual(body.now, { ...fresh, monthLeft: 1_000, stored: [] })
      assert.equal(headers.get('cache-control'), 'private, no-store')
      assert.match(headers.get('ratelimit') ?? '', /"minute";r=1000/)
    }
    const { health: _, ...withoutHealth } = fresh
    assert.deepEqual(await byMcp('dog-images', caller.test), { ...withoutHealth, monthLeft: null, stored: [] })
    const { now, health } = (await inCatalog('news', bearer)).body
    assert.deepEqual([now.limitedBy, now.health, health.status], ['plan', 'Down', 'Down'])
    assert.equal((await send(gateway, '/v1/call/currency/latest', { key: caller.live })).status, 200)
    const after = { ...withoutHealth, minuteLeft: 999, monthLeft: 999, stored: ['/latest'] }
    assert.deepEqual(await byMcp('currency', caller.live), after)
    await withClient('/mcp', { 'x-api-key': caller.live }, async (client) => {
      const { structuredContent }: Result = await client.callTool({ name: 'search_apis', arguments: {} })
      assert.deepEqual(structuredContent.now, { minuteLeft: 999, monthLeft: 999, inFlightLeft: 50 })
    })
    const anonymous = await inCatalog('dog-images', {})
    assert.equal(anonymous.body.now, undefined)
    assert.doesNotMatch(anonymous.headers.get('cache-control') ?? '', /private|no-store/)
    const last = caller.live.at(-1) === 'a' ? 'b' : 'a'
    for (const [wrong, code] of [
      [{ 'x-api-key': 'agw_live_no' }, 'INVALID_API_KEY'],
      [{ 'x-api-key': `"${caller.live}"` }, 'INVALID_API_KEY'],
      [{ 'x-api-key': caller.live.slice(0, -1) + last }, 'INVALID_API_KEY'],
      // If the API key is wrong, a right token does not make up for it.
      [{ ...bearer, 'x-api-key': 'undefined' }, 'INVALID_API_KEY'],
      [{ authorization: 'Bearer undefined' }, 'INVALID_TOKEN'],
      [{ authorization: 'Basic YTpi' }, 'INVALID_TOKEN'],
    ] as [Record<string, string>, string][]) {
      const { status, body, headers } = await inCatalog('dog-images', wrong)
      assert.deepEqual([status, body.code, body.now], [401, code, undefined], JSON.stringify(wrong))
      assert.equal(headers.get('cache-control'), 'no-store')
    }
    assert.equal((await inCatalog('dog-images', { 'x-api-key': '' })).body.now, undefined)
  })

  it('the MCP servers offer no API that waits for the operator, and say what to do if nothing matches', async () => {
    await withClient('/mcp', withKey(), async (client) => {
      const all: Result = await client.callTool({ name: 'search_apis', arguments: { limit: 50 } })
      const names = all.structuredContent.apis.map(({ api }: { api: string }) => api)
      assert.equal(all.structuredContent.total, 27)
      assert.ok(!names.includes('news') && names.includes('weather'))
      assert.ok(all.structuredContent.categories.includes('weather'))
      const none: Result = await client.callTool({ name: 'search_apis', arguments: { query: 'xyzzyqwv' } })
      assert.deepEqual(none.structuredContent.categories, all.structuredContent.categories)
      assert.equal(none.structuredContent.hint, 'Nothing matches. Leave query out to list all 27 APIs.')
      const search = async (given: object) =>
        ((await client.callTool({ name: 'search_apis', arguments: { ...given } })) as Result).structuredContent
      const found = await search({ query: 'weather' })
      assert.deepEqual(Object.keys(found).sort(), ['apis', 'now', 'total'])
      assert.ok(JSON.stringify(found.apis).length < 400 * found.apis.length, JSON.stringify(found.apis))
      const ofWeather = await search({ query: null, category: 'Weather', limit: null })
      assert.ok(ofWeather.total > 0 && ofWeather.total < 27)
      assert.ok(ofWeather.apis.every(({ category }: { category: string }) => category === 'weather'))
      assert.equal(
        (await search({ query: 'xyzzyqwv', category: 'weather' })).hint,
        'Nothing matches. Leave query or category out.',
      )
      const unknown = await search({ category: 'xyzzyqwv' })
      assert.equal(unknown.hint, 'There is no such category. Choose one of categories, or leave category out.')
    })
  })

  it('the MCP servers of chosen APIs have the typed tools of each, and no others', async () => {
    await withClient('/mcp?apis=weather,currency,%20weather', withKey(), async (client) => {
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['weather_current', 'currency_latest', 'currency_pair'],
      )
      assert.match(tools[0]?.description ?? '', /Terms: https:\/\/open-meteo\.com\/en\/terms$/)
      const result: Result = await client.callTool({ name: 'currency_pair', arguments: { from: 'GBP', to: 'JPY' } })
      assert.deepEqual([result.structuredContent.from, result.structuredContent.to], ['GBP', 'JPY'])
      const { resources } = await client.listResources()
      assert.equal(resources.length, 2)
    })
    const wrong = await send(gateway, '/mcp?apis=weather,curency', {
      key: account.test,
      headers: accept,
      body: initialize(LATEST_PROTOCOL_VERSION),
    })
    assert.deepEqual([wrong.status, wrong.body.code], [404, 'API_NOT_FOUND'])
    assert.match(wrong.body.hint, /\bcurrency\b/)
    // Each path that is served is a resource of the sign-in, and a path with a list is not.
    for (const path of ['/mcp/weather,currency', '/mcp/weather%2Cweather', '/mcp/%20weather']) {
      const { status } = await send(gateway, path, {
        key: account.test,
        headers: accept,
        body: initialize(LATEST_PROTOCOL_VERSION),
      })
      assert.equal(status, 404, path)
    }
  })

  it('the MCP server of one API has a typed tool for each endpoint, whose results fit its output schema', async () => {
    for (const slug of THREE) {
      await withClient(`/mcp/${slug}`, { authorization: `Bearer ${account.test}` }, async (client) => {
        // The client itself checks results against the output schemas that it has listed.
        const { tools } = await client.listTools()
        const endpoints = Object.entries(upstreams.get(slug)?.endpoints ?? {})
        assert.equal(tools.length, endpoints.length)
        for (const [index, [, { example, parameters }]] of endpoints.entries()) {
          const tool = tools[index] ?? assert.fail('a tool is missing')
          const names = Object.keys(tool.inputSchema.properties ?? {})
          assert.deepEqual(
            names.filter((name) => !['fields', 'limit'].includes(name) || Object.hasOwn(parameters.properties, name)),
            Object.keys(parameters.properties),
          )
          assert.ok(names.includes('fields'))
          assert.equal(tool._meta?.['anthropic/maxResultSizeChars'], 60_000)
          assert.ok(tool.outputSchema)
          const result: Result = await client.callTool({ name: tool.name, arguments: example.parameters })
          const { mode, note, ...data } = result.structuredContent
          assert.deepEqual(data, JSON.parse(JSON.stringify(example.data)))
          assert.equal(result._meta['agent-api-gateway/x-gateway-mode'], 'test')
          assert.deepEqual([mode, note], ['test', 'Recorded example. Use a live key for real data.'])
        }
      })
    }
  })

  it('the MCP servers report an invalid parameter with a hint from which the call can be corrected', async () => {
    await withClient('/mcp/trivia', withKey(), async (client) => {
      const input: Record<string, unknown> = { amount: 500, difficulty: null }
      const bad: Result = await client.callTool({ name: 'trivia_questions', arguments: input })
      assert.equal(bad.isError, true)
      const { code, hint, docs, message } = JSON.parse(bad.content[0].text)
      assert.equal(code, 'INVALID_PARAMETER')
      assert.match(docs, /\/docs\/errors#INVALID_PARAMETER$/)
      const [, name = ''] = /param=(\w+)/.exec(hint) ?? []
      const [, highest] = /to (\d+)/.exec(message) ?? []
      const mended: Result = await client.callTool({
        name: 'trivia_questions',
        arguments: { ...input, [name]: Number(highest) },
      })
      assert.equal(mended.isError, undefined, JSON.stringify(mended))
      assert.ok(mended.structuredContent.results.length > 0)
    })
  })

  it('the MCP servers report an unknown API, an upstream failure and wrong arguments as results with a code, and an unknown tool with -32602', async () => {
    await withClient('/mcp', { ...withKey(), 'x-gateway-scenario': 'upstream-500' }, async (client) => {
      const codeOf = async (name: string, input: Record<string, unknown>) => {
        const { isError, content }: Result = await client.callTool({ name, arguments: input })
        assert.equal(isError, true)
        return JSON.parse(content[0].text)
      }
      const unknown = await codeOf('describe_api', { api: 'wether' })
      assert.equal(unknown.code, 'API_NOT_FOUND')
      assert.match(unknown.hint, /nearest names, weather\b/)
      for (const [api, hint] of [
        ['weather/current', 'Send api=weather and endpoint=/current.'],
        ['/weather/now', 'Send api=weather and the endpoint as an argument of its own.'],
      ]) {
        const joined = await codeOf('describe_api', { api })
        assert.deepEqual([joined.code, joined.hint], ['API_NOT_FOUND', hint])
      }
      const parameters = { latitude: 1, longitude: 2 }
      const wrong: [string, Record<string, unknown>, RegExp][] = [
        ['call_api', { api: 'weather' }, /Argument endpoint is required\.$/],
        [
          'call_api',
          { api: 'weather', endpoint: '/current', ...parameters },
          /Argument latitude is not known; .* belong in the member parameters\.$/,
        ],
        [
          'call_apis',
          { calls: [{ api: 'weather', endpoint: '/current', params: parameters }] },
          /Argument calls\.0\.params is not known; did you mean parameters\?$/,
        ],
        ['describe_api', { apis: 'weather' }, /Argument api is required; apis is not known\.$/],
      ]
      for (const [name, input, message] of wrong) {
        const error = await codeOf(name, input)
        assert.equal(error.code, 'INVALID_PARAMETER')
        assert.match(error.message, message)
      }
      assert.equal(
        (await codeOf('call_api', { api: 'weather', endpoint: 'current', parameters })).code,
        'UPSTREAM_ERROR',
      )
      assert.equal(
        (await codeOf('call_api', { api: 'weather', endpoint: '/no', parameters })).code,
        'ENDPOINT_NOT_FOUND',
      )
      await assert.rejects(client.callTool({ name: 'no_tool', arguments: {} }), /-32602/)
    })
  })

  it('the MCP servers make test calls for a session that asks for test mode, alone and many at once, and say so to the model', async () => {
    const testMode = { authorization: `Bearer ${account.token}`, 'x-gateway-mode': 'test' }
    const call = { api: 'currency', endpoint: '/latest' }
    const { base } = upstreams.get('currency')?.endpoints['/latest']?.example.data ?? {}
    for (const headers of [testMode, withKey()]) {
      await withClient('/mcp', headers, async (client) => {
        const one: Result = await client.callTool({ name: 'call_api', arguments: call })
        assert.equal(one.structuredContent?.data.base, base, JSON.stringify(one))
        const many: Result = await client.callTool({ name: 'call_apis', arguments: { calls: [call] } })
        assert.equal(many.structuredContent?.results[0].data?.base, base, JSON.stringify(many))
        for (const { mode, note } of [one.structuredContent, many.structuredContent.results[0]]) {
          assert.equal(mode, 'test')
          assert.match(note, /^Recorded example/)
        }
      })
    }
  })

  it('the MCP servers count their calls against the limits of the account, once', async () => {
    const other = await signUp(gateway)
    await withClient('/mcp/currency', { 'x-api-key': other.test }, async (client) => {
      await client.listTools()
      await client.callTool({ name: 'currency_latest', arguments: {} })
      await client.callTool({ name: 'currency_latest', arguments: {} })
    })
    const { headers } = await send(gateway, '/v1/call/currency/latest', { key: other.test })
    assert.equal(headers.get('x-ratelimit-remaining'), '997')
  })

  it('the MCP servers offer the catalog and each API as resources', async () => {
    await withClient('/mcp', withKey(), async (client) => {
      const { resources } = await client.listResources()
      assert.equal(resources.length, upstreams.size + 1)
      // If a server has resources, clients request both.
      assert.deepEqual((await client.listResourceTemplates()).resourceTemplates, [])
      for (const { uri } of resources) {
        const { contents }: Result = await client.readResource({ uri })
        assert.match(contents[0].text, /^# /)
      }
    })
    await withClient('/mcp/weather', withKey(), async (client) => {
      const { resources } = await client.listResources()
      assert.deepEqual(
        resources.map(({ name }) => name),
        ['weather'],
      )
    })
  })

  it('the MCP servers speak the newest protocol revision and the revision before it', async () => {
    assert.equal(LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS[0])
    for (const version of SUPPORTED_PROTOCOL_VERSIONS.slice(0, 2)) {
      const { status, body, headers } = await send(gateway, '/mcp', {
        key: account.test,
        headers: accept,
        body: initialize(version),
      })
      assert.equal(status, 200)
      assert.equal(body.result.protocolVersion, version)
      assert.equal(headers.get('mcp-session-id'), null)
    }
  })

  it('the MCP servers speak the revision without handshake on the same address, to the newest client too', async () => {
    for (const mode of ['auto', { pin: MODERN }] as const) {
      await withMcpClient(
        `${gateway.url}/mcp/currency`,
        withKey(),
        { versionNegotiation: { mode } },
        async ({ client, answers }) => {
          assert.equal(client.getNegotiatedProtocolVersion(), MODERN)
          const { tools } = await client.listTools()
          assert.deepEqual(
            tools.map(({ name }) => name),
            ['currency_latest', 'currency_pair'],
          )
          const result: Result = await client.callTool({ name: 'currency_latest', arguments: {} })
          assert.equal(
            result.structuredContent.base,
            upstreams.get('currency')?.endpoints['/latest']?.example.data.base,
          )
          assert.ok(!answers.some(({ result }) => result?.resultType === 'task'))
        },
      )
    }
    // If the option is not set, the client starts with the handshake as before.
    await withMcpClient(`${gateway.url}/mcp`, withKey(), {}, async ({ client }) => {
      assert.equal(client.getNegotiatedProtocolVersion(), LATEST_PROTOCOL_VERSION)
      assert.equal((await client.listTools()).tools[0]?.name, 'search_apis')
    })
  })

  it('the MCP servers state their name and version, and for how long a client may cache the lists', async () => {
    const modern = (method: string, params: Record<string, unknown> = {}) =>
      send(gateway, '/mcp', { key: account.test, ...modernMessage(method, params) })
    const { result } = (await modern('server/discover')).body
    assert.deepEqual(result.supportedVersions, [MODERN])
    assert.deepEqual(result.capabilities.extensions, { 'io.modelcontextprotocol/tasks': {} })
    assert.deepEqual([result.ttlMs, result.cacheScope], [3_600_000, 'public'])
    const { icons, websiteUrl } = result._meta['io.modelcontextprotocol/serverInfo']
    assert.equal(websiteUrl, 'http://localhost:3000/agents')
    const icon = await fetch(gateway.url + new URL(icons[0].src).pathname)
    assert.equal(icon.headers.get('content-type'), 'image/png')
    assert.equal(Buffer.from(await icon.arrayBuffer()).toString('latin1', 1, 4), 'PNG')
    for (const [method, params] of [
      ['tools/list'],
      ['resources/list'],
      ['resources/read', { uri: 'http://localhost:3000/llms.txt' }],
    ] as const) {
      const { body } = await modern(method, params)
      assert.deepEqual([body.result.ttlMs, body.result.cacheScope], [300_000, 'public'], method)
    }
  })

  it('the MCP servers refuse headers that differ from the message, unknown revisions and unknown methods, each with its code', async () => {
    const message = modernMessage('tools/call', { name: 'search_apis', arguments: {} })
    const codes = async (headers: Record<string, string>, body: object = message.body) => {
      const answer = await send(gateway, '/mcp', {
        key: account.test,
        headers: { ...message.headers, ...headers },
        body,
      })
      return [answer.status, answer.body.error?.code]
    }
    assert.deepEqual(await codes({}), [200, undefined])
    assert.deepEqual(await codes({ 'mcp-name': 'call_api' }), [400, -32_020])
    assert.deepEqual(await codes({ 'mcp-method': 'tools/list' }), [400, -32_020])
    assert.deepEqual(await codes({ 'mcp-protocol-version': '2025-06-18' }), [400, -32_020])
    const text = JSON.stringify(message.body).replaceAll(MODERN, '2030-01-01')
    assert.deepEqual(await codes({ 'mcp-protocol-version': '2030-01-01' }, JSON.parse(text)), [400, -32_022])
    const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
    for (const revision of ['x', 'latest', '1.0', '2024-01-01', '2030-01-01']) {
      const headers = { ...accept, 'mcp-protocol-version': revision }
      const { status, body } = await send(gateway, '/mcp', { key: account.test, headers, body: ping })
      assert.deepEqual([status, body.id, body.error.code], [400, 7, -32_022], revision)
      assert.match(body.error.message, new RegExp(`^The header MCP-Protocol-Version names the revision ${revision}, `))
      assert.deepEqual(body.error.data.supported.slice(0, 2), [MODERN, '2025-11-25'])
    }
    for (const method of ['nothing/here', 'subscriptions/listen']) {
      const unknown = await send(gateway, '/mcp', { key: account.test, ...modernMessage(method) })
      assert.deepEqual([unknown.status, unknown.body.error.code], [404, -32_601])
    }
  })

  it('the MCP servers answer an array of messages to a client of the revision that has arrays, each as a request of its own', async () => {
    const ask = (body: unknown, headers = {}) =>
      send(gateway, '/mcp', { key: account.test, headers: { ...accept, ...headers }, body })
    const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    const arguments_ = { api: 'random-facts', endpoint: '/random' }
    const call = {
      jsonrpc: '2.0',
      id: 'call',
      method: 'tools/call',
      params: { name: 'call_api', arguments: arguments_ },
    }
    const initialize = { jsonrpc: '2.0', id: 7, method: 'initialize', params: {} }
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' }
    const { status, body } = await ask([ping(1), notification, call, null, initialize])
    assert.equal(status, 200)
    assert.deepEqual(
      body.map(({ id, error }: { id: unknown; error?: { code: number } }) => [id, error?.code]),
      [
        [1, undefined],
        ['call', undefined],
        [null, -32_600],
        [7, -32_600],
      ],
    )
    assert.equal(body[1].result.isError, undefined)
    assert.equal(body[1].result.structuredContent.mode, 'test')
    const asStream = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { 'x-api-key': account.test, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify([ping(2)]),
    })
    assert.match(await asStream.text(), /^event: message\ndata: \[\{.*"id":2/)
    const silent = await ask([notification])
    assert.deepEqual([silent.status, silent.text], [202, ''])
  })

  it('the MCP servers refuse an array that is empty or too long, and any array of a client of another revision', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    for (const [version, body, message] of [
      ['2025-03-26', [], /must have at least one message/],
      ['2025-03-26', Array.from({ length: 9 }, () => ping), /at most 8 messages/],
      ['2025-06-18', [ping], /^A request must have one message, /],
      [MODERN, [ping, ping], /^A request must have one message, /],
    ] as const) {
      const headers = { ...accept, 'mcp-protocol-version': version }
      const answer = await send(gateway, '/mcp', { key: account.test, headers, body })
      assert.deepEqual([answer.status, answer.body.id, answer.body.error?.code], [400, null, -32_600])
      assert.match(answer.body.error.message, message)
    }
  })

  it('a member of a message that JSON-RPC does not have is ignored', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'ping', trace: { id: 'a' } }
    const { status, body: answer } = await send(gateway, '/mcp', { key: account.test, headers: accept, body })
    assert.deepEqual([status, answer], [200, { jsonrpc: '2.0', id: 1, result: {} }])
  })

  it('the MCP servers say which member of a message is wrong, and do not know an unknown method whatever its parameters are', async () => {
    const ask = (message: object) =>
      send(gateway, '/mcp', { key: account.test, headers: accept, body: { jsonrpc: '2.0', ...message } })
    for (const id of [null, 1.5, true, {}]) {
      const { status, body } = await ask({ id, method: 'ping' })
      const error = { code: -32_600, message: 'Member id must be a string or a whole number.' }
      assert.deepEqual([status, body], [400, { jsonrpc: '2.0', id: null, error }])
    }
    const { status, body } = await ask({ id: 7 })
    const error = { code: -32_600, message: 'Member method is required.' }
    assert.deepEqual([status, body], [400, { jsonrpc: '2.0', id: 7, error }])
    for (const params of [[1], 'all', 5]) {
      const { body: unknown } = await ask({ id: 1, method: 'prompts/get', params })
      assert.equal(unknown.error?.code, -32_601, JSON.stringify(unknown))
    }
  })

  it('the MCP servers treat null as an absent parameter of any method, and report an invalid parameter in one sentence', async () => {
    const ask = async (method: string, params: unknown) => {
      const answer = await send(gateway, '/mcp', {
        key: account.test,
        headers: accept,
        body: { jsonrpc: '2.0', id: 1, method, params },
      })
      assert.equal(answer.status, 200, answer.text)
      return answer.body
    }
    const clientInfo = { name: 'test', version: '1', title: null }
    const taken: [string, unknown][] = [
      ['tools/list', { cursor: null, _meta: null }],
      ['tools/list', null],
      ['resources/list', { cursor: '' }],
      ['resources/templates/list', { cursor: null, _meta: { progressToken: null } }],
      ['ping', { _meta: null }],
      ['initialize', { protocolVersion: '2025-06-18', capabilities: { roots: { listChanged: null } }, clientInfo }],
      ['tools/call', { name: 'search_apis', arguments: null }],
      ['tools/call', { name: 'search_apis', arguments: '' }],
      ['tools/call', { name: 'search_apis', arguments: '{"query":"weather"}' }],
    ]
    for (const [method, params] of taken) {
      const { result, error } = await ask(method, params)
      assert.ok(result, `${method} ${JSON.stringify(params)} ${JSON.stringify(error)}`)
    }
    const lossy = { api: 'mock-data', endpoint: '/posts', parameters: '{"cursor":9007199254740993}' }
    const refused: [string, unknown, RegExp][] = [
      ['tools/list', { cursor: 5 }, /^Argument cursor is invalid: expected string, received number\.$/],
      // A list has a single page, so every cursor is foreign.
      ['tools/list', { cursor: 'eyJwYWdlIjoyfQ' }, /^The cursor is not valid: .* Leave cursor out\.$/],
      ['resources/list', { cursor: 'x' }, /^The cursor is not valid: /],
      ['resources/templates/list', { cursor: '0' }, /^The cursor is not valid: /],
      ['tools/list', 'all', /^The parameters must be a JSON object\.$/],
      ['tools/list', [1], /^The parameters must be a JSON object\.$/],
      ['tools/call', { arguments: {} }, /^Argument name is required\.$/],
      ['tools/call', { nmae: 'search_apis' }, /^Argument name is required; nmae is not known\.$/],
      ['tools/call', { name: 'search_apis', arguments: [1] }, /^Argument arguments is invalid: /],
      ['tools/call', { name: 'search_apis', arguments: '{"query":' }, /^Argument arguments is invalid: /],
      ['tools/call', { name: 'search_apis', arguments: '{"__proto__":{}}' }, /not allowed\.$/],
      ['resources/read', { uri: null }, /^Argument uri is required\.$/],
      ['initialize', { capabilities: 5 }, /^Argument \S+ is /],
      ['ping', { _meta: 5 }, /^Argument _meta is invalid: /],
      ['ping', { _meta: { progressToken: {} } }, /^Argument _meta.progressToken is invalid\.$/],
      ['tools/call', { name: 'search_apis', arguments: 5 }, /: expected object, received number\.$/],
    ]
    for (const [method, params, message] of refused) {
      const { error } = await ask(method, params)
      assert.equal(error?.code, -32_602, `${method} ${JSON.stringify(params)}`)
      assert.match(error.message, message)
    }
    const { result } = await ask('tools/call', { name: 'call_api', arguments: lossy })
    assert.match(JSON.parse(result.content[0].text).message, /^cursor is invalid: .* send it as a string\.$/)
  })

  it('the MCP servers accept the arguments of every tool in the forms in which models and their clients write them', async () => {
    await withClient('/mcp', withKey(), async (client) => {
      const call = async (name: string, input: Record<string, unknown>): Promise<Result> => {
        const result: Result = await client.callTool({ name, arguments: input })
        assert.equal(result.isError, undefined, JSON.stringify(result))
        return result.structuredContent
      }
      const { total } = await call('search_apis', { query: 'weather' })
      assert.equal((await call('search_apis', { query: 'weather', category: '', limit: '' })).total, total)
      assert.equal((await call('search_apis', { limit: '3', query: '' })).apis.length, 3)
      assert.equal((await call('describe_api', { api: 'currency', endpoint: '' })).endpoints.length, 2)
      const place = { latitude: '40.71', longitude: -74.01 }
      for (const parameters of [place, JSON.stringify(place), { ...place, units: '' }]) {
        const input = { api: 'weather', endpoint: '/current', parameters, fields: '', limit: null }
        const { data, endpoint } = await call('call_api', { ...input, endpoint: 'current' })
        // As a task says it too, whatever the caller wrote.
        assert.deepEqual([data.temperature_c, endpoint], [15.3, '/current'])
        const many = await call('call_apis', { calls: JSON.stringify([input]), take: '' })
        assert.equal(many.results[0].data?.temperature_c, 15.3, JSON.stringify(many))
      }
    })
    await withClient('/mcp/trivia', withKey(), async (client) => {
      const input = { amount: '3', difficulty: '', type: null, category: '' }
      const { structuredContent }: Result = await client.callTool({ name: 'trivia_questions', arguments: input })
      assert.ok(structuredContent?.results.length > 0)
    })
  })

  it('the MCP servers forward an undeclared number as it was written, by every tool', async () => {
    upstream.play('mock-data', () => upstreams.get('mock-data')?.endpoints['/posts']?.example.response)
    const call = '{"api":"mock-data","endpoint":"/posts","parameters":{"id":1.0,"cursor":1.10,"of":[2.0,3]}}'
    const tools: [path: string, name: string, input: string][] = [
      ['/mcp', 'call_api', call],
      ['/mcp', 'call_apis', `{"calls":[${call.replace('1.10', '1e2')}]}`],
      ['/mcp/mock-data', 'mock_data_posts', '{"id":"1","cursor":-0,"of":[2.0]}'],
      ['/mcp/mock-data', 'mock_data_posts', JSON.stringify('{"id":1,"cursor":1.10}')],
    ]
    for (const [path, name, input] of tools) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${input}}}`
      const answer = await send(gateway, path, { key: account.live, headers: accept, body })
      assert.equal(answer.body.result?.isError, undefined, answer.text)
    }
    assert.deepEqual(
      upstream.arrivalsOf('mock-data').map(({ url }) => url),
      [
        '/posts/1?cursor=1.10&of=2.0&of=3',
        '/posts/1?cursor=1e2&of=2.0&of=3',
        '/posts/1?cursor=-0&of=2.0',
        '/posts/1?cursor=1.10',
      ],
    )
  })

  it('the MCP servers answer with the requested part of the data, and refuse a part that the data do not have', async () => {
    const fields = ['comments[].email', 'comments[].id']
    await withClient('/mcp', withKey(), async (client) => {
      const call: Result = await client.callTool({
        name: 'call_api',
        arguments: { api: 'mock-data', endpoint: '/comments', fields, limit: 2 },
      })
      const { comments } = call.structuredContent.data
      assert.equal(comments.length, 2)
      assert.deepEqual(Object.keys(comments[0]), ['email', 'id'])
      const refused: [Record<string, unknown>, RegExp][] = [
        [{ fields: ['coments[].id'] }, /Argument fields names coments\[\]\.id, .* did you mean comments\[\]\.id\?/],
        [{ fields: Array.from({ length: 200 }, () => 'comments') }, /Argument fields must have at most 20 members/],
        [{ fields: ['__proto__'] }, /Argument fields names __proto__, .* the members of the data are count, comments/],
        [{ fields: ['comments[].id'.repeat(99)] }, /at most 120 characters/],
        [{ fields: { id: 1 } }, /Argument fields must be a list/],
        [{ limit: 0 }, /Argument limit must be at least 1/],
        [{ limit: -5 }, /Argument limit must be at least 1/],
        [{ limit: 1_001 }, /Argument limit must be at most 1000/],
        [{ limit: 'many' }, /Argument limit must be a whole number/],
        [{ limits: 5 }, /Argument limits is not known; did you mean limit\?/],
      ]
      for (const [selection, message] of refused) {
        const call = { api: 'mock-data', endpoint: '/comments', ...selection }
        for (const [name, input] of [
          ['call_api', call],
          ['call_apis', { calls: [call] }],
        ] as const) {
          const { isError, content }: Result = await client.callTool({ name, arguments: input })
          assert.equal(isError, true)
          assert.match(JSON.parse(content[0].text).message.replace('calls.0.', ''), message)
        }
      }
    })
    await withClient('/mcp/mock-data', withKey(), async (client) => {
      await client.listTools()
      const typed: Result = await client.callTool({ name: 'mock_data_comments', arguments: { fields, limit: '1' } })
      assert.deepEqual(Object.keys(typed.structuredContent.comments[0]), ['email', 'id'])
      const refused: Result = await client.callTool({ name: 'mock_data_comments', arguments: { limit: 0 } })
      assert.equal(JSON.parse(refused.content[0].text).code, 'INVALID_PARAMETER')
    })
  })

  it('the MCP servers cut an answer that is too long at the end of an item, and state what to request instead', async () => {
    const call = { api: 'mock-data', endpoint: '/comments' }
    const body = 'x'.repeat(200)
    upstream.play('mock-data', () =>
      Array.from({ length: 500 }, (_, id) => ({ postId: 1, id, name: 'a name', email: 'a@b.example', body })),
    )
    upstream.play('currency', () => upstreams.get('currency')?.endpoints['/latest']?.example.response)
    await withClient('/mcp', { 'x-api-key': account.live }, async (client) => {
      const one: Result = await client.callTool({ name: 'call_api', arguments: call })
      const { data, truncated } = one.structuredContent
      assert.ok(JSON.stringify(one.structuredContent).length <= 40_000)
      assert.deepEqual([truncated.path, truncated.of, truncated.shown], ['comments', 500, data.comments.length])
      assert.match(truncated.hint, /^Request fewer fields, such as comments\[\]\.id, /)
      const whole: Result = await send(gateway, '/v1/call/mock-data/comments', { key: account.live })
      assert.equal(whole.body.data.comments.length, 500)
      assert.deepEqual(data.comments, whole.body.data.comments.slice(0, truncated.shown))
      const small = { api: 'currency', endpoint: '/latest' }
      const many: Result = await client.callTool({
        name: 'call_apis',
        arguments: { calls: [call, small, { ...call, fields: ['comments[].id'] }] },
      })
      assert.ok(JSON.stringify(many.structuredContent).length <= 40_000)
      const [first, second, third] = many.structuredContent.results
      assert.equal(first.truncated.shown, first.data.comments.length)
      assert.deepEqual([second.truncated, third.truncated, third.data.comments.length], [undefined, undefined, 500])
      assert.ok(JSON.stringify(first.data).length > 20_000, 'what the others do not need is the first one’s')
    })
  })

  it('the MCP servers end a call whose request a client of an earlier revision cancels', async (t) => {
    const caller = await signUp(gateway)
    const redis = openOperatorRedis(gateway)
    t.after(() => redis.disconnect())
    const inFlight = () => redis.zcard(accountKeys.inFlight(caller.id, 'test'))
    const post = (body: object) =>
      fetch(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: {
          ...{ ...accept, 'content-type': 'application/json', 'x-api-key': caller.test },
          'x-gateway-scenario': 'slow-60000',
        },
        body: JSON.stringify(body),
      })
    const cancel = (requestId: unknown) =>
      post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
    const call = { api: 'currency', endpoint: '/latest' }
    for (const params of [
      { name: 'call_api', arguments: call },
      { name: 'call_api', arguments: call, _meta: { progressToken: 'p' } },
      { name: 'call_apis', arguments: { calls: [call] } },
    ]) {
      const answer = post({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }).then((one) => one.text())
      await until(async () => (await inFlight()) === 1)
      assert.equal((await cancel('7')).status, 202)
      assert.equal((await cancel(undefined)).status, 202)
      assert.equal(await inFlight(), 1)
      assert.equal((await cancel(7)).status, 202)
      assert.match(await answer, /CALL_CANCELLED/)
      await until(async () => (await inFlight()) === 0)
    }
  })

  it('the MCP servers answer in the form that a client accepts, and with 406 if it accepts neither form', async () => {
    for (const message of [
      { headers: { 'content-type': 'application/json' }, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      modernMessage('tools/list'),
    ]) {
      const answerTo = async (accept: string) => {
        const headers = { ...message.headers, 'x-api-key': account.test, accept }
        const body = JSON.stringify(message.body)
        const answer = await fetch(`${gateway.url}/mcp`, { method: 'POST', headers, body })
        return { status: answer.status, type: answer.headers.get('content-type') ?? '', text: await answer.text() }
      }
      for (const accept of ['*/*', 'application/json', 'application/*;q=0.5', 'text/event-stream, application/json']) {
        const { status, type, text } = await answerTo(accept)
        assert.equal(status, 200, accept)
        assert.match(type, /^application\/json/)
        assert.ok(JSON.parse(text).result.tools.length > 0)
      }
      for (const accept of ['text/event-stream', 'text/*, application/json;q=0']) {
        const { type, text } = await answerTo(accept)
        assert.match(type, /^text\/event-stream/, accept)
        assert.ok(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '').result.tools.length > 0)
      }
    }
    const neither = await send(gateway, '/mcp', {
      key: account.test,
      headers: { accept: 'text/html' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    })
    assert.deepEqual([neither.status, neither.body.error.message.includes(' or text/event-stream')], [406, true])
  })

  it('the MCP servers ask for a credential with 401 and a challenge, and refuse a wrong credential', async () => {
    const none = await send(gateway, '/mcp', { headers: accept, body: initialize(LATEST_PROTOCOL_VERSION) })
    assert.equal(none.status, 401)
    assert.equal(none.body.code, 'AUTH_REQUIRED')
    assert.match(none.headers.get('www-authenticate') ?? '', /^Bearer /)
    const wrong = await send(gateway, '/mcp/weather', {
      key: 'agw_live_no',
      headers: accept,
      body: initialize('2025-06-18'),
    })
    assert.equal(wrong.body.code, 'INVALID_API_KEY')
  })

  it('the MCP servers answer at their addresses with a trailing slash too', async () => {
    // The description has each address once.
    const list = (path: string, credential: Record<string, string>) =>
      fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...accept, ...credential },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      })
    const key = { 'x-api-key': account.test }
    for (const path of ['/mcp', '/mcp?apis=weather,currency', '/mcp/weather']) {
      const slashed = path.replace(/(?=\?|$)/, '/')
      const [plain, other] = await Promise.all([list(path, key), list(slashed, key)])
      assert.equal(await other.text(), await plain.text(), slashed)
      const challenge = (await list(slashed, {})).headers.get('www-authenticate')
      // The document names the very address that the client uses (RFC 9728, 3.3).
      assert.ok(challenge?.includes(`/oauth-protected-resource${slashed}"`), `${slashed}: ${challenge}`)
    }
    assert.equal((await list('/mcp//', key)).status, 404)
  })

  it('the MCP servers have no streams or sessions to open or end: GET and DELETE are answered 405', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await send(gateway, '/mcp', { method, key: account.test, headers: accept })
      assert.equal(status, 405)
      assert.equal(headers.get('allow'), 'POST')
    }
  })

  it('the MCP servers refuse pages of other origins, and answer 404 for an API that is not in the catalog', async () => {
    const body = initialize(LATEST_PROTOCOL_VERSION)
    for (const origin of ['https://evil.example', 'null', 'http://localhost:1']) {
      const { status } = await send(gateway, '/mcp', { key: account.test, headers: { ...accept, origin }, body })
      assert.equal(status, 403, origin)
    }
    const own = await send(gateway, '/mcp', {
      key: account.test,
      headers: { ...accept, origin: 'http://localhost:3000' },
      body,
    })
    assert.equal(own.status, 200)
    assert.equal(
      (await send(gateway, '/mcp/nothing', { key: account.test, headers: accept, body })).body.code,
      'API_NOT_FOUND',
    )
  })
})
