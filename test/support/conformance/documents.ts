import assert from 'node:assert/strict'
import { assertFailure, type Statement, type World } from './world.ts'

/** Fetches a public page or file without a session. */
async function read({ gateway }: World, path: string): Promise<{ status: number; headers: Headers; text: string }> {
  const { status, headers, text } = await fetch(gateway.url + path, { redirect: 'manual' }).then(async (response) => ({
    status: response.status,
    headers: response.headers,
    text: await response.text(),
  }))
  return { status, headers, text }
}

/**
 * A statement that the gateway answers anybody at this path with 200, this media type and this
 * text.
 */
function serves(path: string, type: RegExp, what: RegExp): Statement {
  return {
    says: `GET ${path} is answered to anybody, as ${type.source.replaceAll('\\', '')}`,
    holds: async (world) => {
      const { status, headers, text } = await read(world, path)
      assert.equal(status, 200)
      assert.match(headers.get('content-type') ?? '', type)
      assert.match(text, what)
    },
  }
}

/** Statements about the documents that a gateway serves. */
export const DOCUMENT_STATEMENTS: Statement[] = [
  serves('/healthz', /^application\/json/, /./),
  serves('/readyz', /^application\/json/, /./),
  serves('/openapi.json', /^application\/json/, /"openapi":"3\.1\.0"/),
  serves('/docs', /^text\/html/, /<title>/),
  serves('/docs/errors', /^text\/html/, /id="RATE_LIMIT_EXCEEDED"/),
  serves('/llms.txt', /^text\/plain/, /^# /),
  serves('/client.ts', /^text\/plain/, /class Gateway\b/),
  serves('/client.py', /^text\/x-python/, /class Gateway\b/),
  serves('/postman.json', /^application\/json/, /v2\.1\.0/),
  serves('/.well-known/api-catalog', /^application\/linkset\+json/, /"service-desc"/),
  {
    says: 'the home page links to the API catalog, the description and the catalog for language models',
    holds: async (world) => {
      const link = (await read(world, '/')).headers.get('link') ?? ''
      for (const relation of ['api-catalog', 'service-desc', 'describedby']) {
        const address = new RegExp(`<([^>]+)>; rel="${relation}"`).exec(link)?.[1] ?? assert.fail(relation)
        assert.equal((await read(world, address)).status, 200)
      }
    },
  },
  {
    says: 'without a contact of the operator there is no security.txt',
    holds: async ({ send }) => assertFailure(await send('/.well-known/security.txt'), 404, 'NOT_FOUND'),
  },
  {
    says: 'pages of any origin may read public routes',
    holds: async (world) => {
      for (const path of ['/v1/catalog', '/v1/catalog/weather', '/llms.txt', '/docs/errors.md', '/docs/apis/weather.md',
        '/openapi.json', '/postman.json', '/.well-known/api-catalog']) {
        assert.equal((await read(world, path)).headers.get('access-control-allow-origin'), '*', path)
      } // biome-ignore format: a list
      assert.equal((await read(world, '/v1/me')).headers.get('access-control-allow-origin'), null)
    },
  },
  {
    says: 'the description is OpenAPI 3.1.0 of interface 0.3.0 with one server, and every route of the interface is under /v1',
    holds: async (world) => {
      const { openapi, info, servers, paths } = JSON.parse((await read(world, '/openapi.json')).text)
      assert.deepEqual([openapi, info.version, servers.length], ['3.1.0', '0.3.0', 1])
      const spec = ['/v1/auth/signup', '/v1/auth/login', '/v1/me', '/v1/catalog', '/v1/keys', '/v1/keys/{id}', '/v1/teams',
        '/v1/teams/{id}', '/v1/teams/{id}/members', '/v1/teams/{id}/members/{memberId}', '/v1/billing/status',
        '/v1/call/{apiSlug}/{endpoint}'] // biome-ignore format: a list
      for (const path of spec) assert.ok(path in paths, path)
    },
  },
  {
    says: "the description states the upstream's own JSON beside the envelope of a call's 200",
    holds: async (world) => {
      const { paths } = JSON.parse((await read(world, '/openapi.json')).text)
      const { content } = paths['/v1/call/{apiSlug}/{endpoint}'].get.responses[200]
      assert.deepEqual(Object.keys(content), ['application/json', 'application/vnd.upstream+json'])
    },
  },
  {
    says: 'every code of the contract, and no code about idempotency, has a section on /docs/errors',
    holds: async (world) => {
      const { text } = await read(world, '/docs/errors')
      const codes = `VALIDATION_ERROR INVALID_JSON INVALID_ENCODING INVALID_PARAMETER EMAIL_IN_USE PROVIDER_KEY_REQUIRED
        PROVIDER_KEY_INVALID UPSTREAM_REJECTED AUTH_REQUIRED INVALID_CREDENTIALS INVALID_API_KEY INVALID_TOKEN TOKEN_EXPIRED
        PLAN_UPGRADE_REQUIRED FORBIDDEN OWNER_IMMUTABLE NOT_FOUND API_NOT_FOUND ENDPOINT_NOT_FOUND KEY_NOT_FOUND
        TEAM_NOT_FOUND MEMBER_NOT_FOUND USER_NOT_FOUND CALL_NOT_FOUND UPSTREAM_NOT_FOUND METHOD_NOT_ALLOWED REQUEST_TIMEOUT
        PAYLOAD_TOO_LARGE URI_TOO_LONG UNSUPPORTED_MEDIA_TYPE HEADERS_TOO_LARGE ALREADY_MEMBER KEY_LIMIT_REACHED
        CALL_CANCELLED RATE_LIMIT_EXCEEDED MONTHLY_QUOTA_EXCEEDED CONCURRENCY_LIMIT_EXCEEDED LOGIN_THROTTLED
        SIGNUP_THROTTLED INTERNAL_ERROR UPSTREAM_ERROR UPSTREAM_TIMEOUT UPSTREAM_INVALID_RESPONSE UPSTREAM_TOO_LARGE
        UPSTREAM_REDIRECT_BLOCKED UPSTREAM_AUTH_FAILED UPSTREAM_RATE_LIMITED UPSTREAM_UNAVAILABLE UPSTREAM_CAP_EXHAUSTED
        API_NOT_ENABLED API_PAUSED OVERLOADED DEADLINE_EXCEEDED DEPENDENCY_UNAVAILABLE DRAINING`.split(/\s+/)
      assert.deepEqual(
        codes.filter((code) => !text.includes(`id="${code}"`)),
        [],
      )
      assert.doesNotMatch(text, /IDEMPOTENCY/)
    },
  },
  {
    says: 'POST /mcp lists search_apis, describe_api, call_api and call_apis for an API key, and is answered 401 without a key',
    holds: async ({ send, elite }) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      const headers = { accept: 'application/json, text/event-stream' }
      const { status, body: answer } = await send('/mcp', { key: elite.test, headers, body })
      assert.equal(status, 200)
      const names = answer.result.tools.map(({ name }: { name: string }) => name)
      for (const name of ['search_apis', 'describe_api', 'call_api']) assert.ok(names.includes(name), name)
      assertFailure(await send('/mcp', { headers, body }), 401, 'AUTH_REQUIRED')
    },
  },
  {
    says: 'POST /mcp/{slug} has a typed tool for each endpoint',
    holds: async ({ send, elite }) => {
      const headers = { accept: 'application/json, text/event-stream' }
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      const { tools } = (await send('/mcp/sports-scores', { key: elite.test, headers, body })).body.result
      assert.equal(tools.length, 3)
      for (const tool of tools) assert.deepEqual([tool.inputSchema.type, tool.outputSchema.type], ['object', 'object'])
    },
  },
  {
    says: 'the MCP challenge names the protected resource, whose metadata name the public address whatever Host says',
    holds: async (world) => {
      const headers = { accept: 'application/json, text/event-stream' }
      const refused = await world.send('/mcp', { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } })
      const challenge = refused.headers.get('www-authenticate') ?? ''
      assert.match(
        challenge,
        /resource_metadata="http:\/\/localhost:3000\/\.well-known\/oauth-protected-resource\/mcp"/,
      )
      const { resource } = JSON.parse((await read(world, '/.well-known/oauth-protected-resource/mcp')).text)
      assert.equal(resource, 'http://localhost:3000/mcp')
      const { issuer } = JSON.parse((await read(world, '/.well-known/oauth-authorization-server')).text)
      assert.equal(issuer.replace(/\/$/, ''), 'http://localhost:3000')
    },
  },
  {
    says: 'GET /v1/connections lists the applications that have signed in, at first none',
    holds: async ({ send, free }) => {
      assert.deepEqual((await send('/v1/connections', { token: free.token })).body, { connections: [] })
      assertFailure(await send('/v1/connections', { token: free.live }), 401, 'INVALID_TOKEN')
    },
  },
  {
    says: 'the public port serves nothing of the operator API and the console',
    holds: async ({ send, gateway }) => {
      const token = gateway.environment.OPERATOR_TOKEN
      for (const path of ['/v1/operator/overview', '/queues', '/metrics']) {
        assert.equal((await send(path, { token })).status, 404, path)
      }
    },
  },
]
