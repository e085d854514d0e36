import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import openapiTypescript from 'openapi-typescript'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { checkAnswer } from '../support/answer-check.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const BIN = join(ROOT, 'node_modules', '.bin')
const BASE_URL = 'http://gateway.test'
const run = promisify(execFile)

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document is any JSON
type Json = any

describe('the OpenAPI document', () => {
  let gateway: Gateway
  let account: Account
  let document: Json
  let folder: string

  before(async () => {
    gateway = await startGateway({
      isInProcess: true,
      environment: { BASE_URL, PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
    })
    account = await signUp(gateway)
    document = await (await fetch(`${gateway.url}/openapi.json`)).json()
    folder = await mkdtemp(join(tmpdir(), 'agw-openapi-'))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
  })
  after(async () => {
    await rm(folder, { recursive: true, force: true })
    await gateway.stop()
  })

  const operations = (): { name: string; operation: Json }[] =>
    Object.entries<Json>(document.paths).flatMap(([path, item]) =>
      Object.entries<Json>(item)
        .filter(([method]) => method !== 'parameters')
        .map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
    )

  it('the OpenAPI document describes every member of every body, and every parameter', () => {
    const silent: string[] = []
    const walk = (schema: Json, place: string): void => {
      if (typeof schema !== 'object') return
      for (const [name, member] of Object.entries<Json>(schema.properties ?? {})) {
        if (!member.$ref && !member.description) silent.push(`${place}.${name}`)
        walk(member, `${place}.${name}`)
      }
      for (const inner of [schema.items, schema.additionalProperties]) walk(inner, `${place}[]`)
      for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) walk(inner, place)
    }
    const content = (of: Json, place: string): void => {
      for (const { schema } of Object.values<Json>(of?.content ?? {})) walk(schema, place)
    }
    for (const [name, schema] of Object.entries<Json>(document.components.schemas)) walk(schema, name)
    for (const [name, response] of Object.entries<Json>(document.components.responses)) content(response, name)
    for (const { name, operation } of operations()) {
      content(operation.requestBody, `${name} body`)
      for (const [status, response] of Object.entries<Json>(operation.responses)) content(response, `${name} ${status}`)
      for (const parameter of operation.parameters ?? []) {
        if (!parameter.$ref && !parameter.description) silent.push(`${name} ${parameter.name}`)
      }
    }
    assert.deepEqual(silent, [])
  })

  it('the OpenAPI document says of every object in the body of a request whether other members may be in it', () => {
    const silent: string[] = []
    const walk = (schema: Json, place: string): void => {
      const { $ref, properties = {}, items, anyOf = [], additionalProperties } = schema
      if ($ref) walk(document.components.schemas[$ref.split('/').at(-1)], place)
      if (schema.type === 'object' && additionalProperties === undefined) silent.push(place)
      for (const [name, member] of Object.entries<Json>(properties)) walk(member, `${place}.${name}`)
      for (const inner of [...(items ? [items] : []), ...anyOf]) walk(inner, place)
    }
    const isClosed = (name: string) =>
      operations().find((operation) => operation.name === name)?.operation.requestBody.content['application/json']
        .schema.additionalProperties
    for (const { name, operation } of operations()) {
      if (operation.requestBody) walk(operation.requestBody.content['application/json'].schema, name)
    }
    assert.deepEqual(silent, [])
    assert.equal(isClosed('POST /v1/keys'), false)
    assert.equal(isClosed('POST /v1/batch'), false)
  })

  it('the OpenAPI document is version 3.1.0 of interface 0.3.0 and lists this server alone', () => {
    assert.equal(document.openapi, '3.1.0')
    assert.equal(document.info.version, '0.3.0')
    assert.deepEqual(
      document.servers.map(({ url }: Json) => url),
      [BASE_URL],
    )
  })

  it('the OpenAPI document passes the recommended rules of redocly lint without a warning', async () => {
    const { stdout, stderr } = await run(join(BIN, 'redocly'), ['lint', '--format=json', 'openapi.json'], {
      cwd: folder,
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    }).catch((error) => error)
    const { problems } = JSON.parse(stdout)
    assert.deepEqual(
      problems.map(({ ruleId, message, location }: Json) => [ruleId, message, location]),
      [],
      stderr,
    )
  })

  it('the OpenAPI document gives every route a summary, a known tag, a name of its own and a described success', () => {
    const names = new Set<string>()
    const tags = new Set(document.tags.map(({ name }: Json) => name))
    for (const { name, operation } of operations()) {
      assert.ok(operation.summary, `${name} has no summary: add schema.summary beside the route`)
      assert.ok(operation.tags?.length > 0, `${name} has no tags: add schema.tags beside the route`)
      for (const tag of operation.tags) assert.ok(tags.has(tag), `${name} has the unlisted tag ${tag}`)
      assert.ok(!names.has(operation.operationId), `${name}: ${operation.operationId} is taken`)
      names.add(operation.operationId)
      const successes = Object.entries<Json>(operation.responses).filter(([status]) => status.startsWith('2'))
      assert.ok(successes.length > 0, `${name} has no success: add schema.response beside the route`)
      for (const [status, response] of successes) {
        const isDescribed = !response.content || Object.values<Json>(response.content)[0]?.schema
        assert.ok(isDescribed, `${name} ${status} has no schema`)
      }
    }
  })

  it('the OpenAPI document writes out every endpoint of every API with its declared parameters and its recorded answer', async () => {
    for (const [slug, { endpoints }] of await loadUpstreams()) {
      for (const [path, endpoint] of Object.entries(endpoints)) {
        const { get } = document.paths[`/v1/call/${slug}${path}`]
        const parameters = get.parameters.filter((parameter: Json) => parameter.in === 'query')
        assert.deepEqual(
          parameters.map(({ name, required, 'x-aliases': aliases }: Json) => [name, required, aliases]),
          Object.keys(endpoint.parameters.properties).map((name) => [
            name,
            (endpoint.parameters.required ?? []).includes(name),
            Object(endpoint.aliases)[name],
          ]),
        )
        const { examples, schema } = get.responses[200].content['application/json']
        assert.deepEqual(examples.recorded.value.data, JSON.parse(JSON.stringify(endpoint.example.data)))
        assert.match(schema.properties.data.$ref, /^#\/components\/schemas\/\w+$/)
      }
    }
  })

  it('the OpenAPI document shows an error answer under its own status, with an example of each code', () => {
    for (const { name, operation } of operations()) {
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        if (status < '4') continue
        const { content } = response.$ref ? document.components.responses[response.$ref.split('/').at(-1)] : response
        const examples = Object.keys(content['application/json'].examples ?? {})
        for (const code of examples.map((example) => example.replace(/^call\./, ''))) {
          const actual = ERRORS[code as ErrorCode].status
          if (status === 'default') assert.ok([405, 408, 413, 414, 415, 431].includes(actual), `${name} ${code}`)
          else assert.equal(actual, Number(status), `${name} ${status}`)
        }
      }
    }
    const call = Object.keys(document.paths['/v1/call/weather/current'].get.responses).map(Number)
    for (const status of [200, 400, 401, 402, 404, 429, 500, 502, 503]) assert.ok(call.includes(status), `${status}`)
  })

  it('the OpenAPI document asks for the credentials that the routes ask for', async () => {
    for (const { name, operation } of operations()) {
      const [method = '', path = ''] = name.split(' ')
      if (operation.security.length === 0 || path.startsWith('/mcp')) continue
      const real = path
        .replace(/\{apiSlug\}|\{slug\}/, 'weather')
        .replace('{endpoint}', 'current')
        .replace(/\{\w+\}/g, 'x')
      const answer = await send(gateway, real, { method, ...(method === 'GET' ? {} : { body: {} }) })
      assert.equal(answer.status, 401, name)
    }
  })

  it('the OpenAPI document refuses, in this suite, an answer that it does not describe', async () => {
    const answer = {
      node: gateway.url,
      method: 'GET',
      path: '/v1/me',
      status: 200,
      contentType: 'application/json',
      text: '{"id":"9f1c3c52-7f3e-4f8e-9d43-0d3f0f7f9a11","email":"a@b.c","tier":"pro","termsAcceptedAt":null}',
    }
    await checkAnswer(answer)
    await assert.rejects(checkAnswer({ ...answer, status: 418 }), /no GET \/v1\/me 418/)
    await assert.rejects(checkAnswer({ ...answer, contentType: 'text/html' }), /not text\/html/)
    await assert.rejects(checkAnswer({ ...answer, text: answer.text.replace('"id"', '"ID"') }), /required property/)
    await assert.rejects(checkAnswer({ ...answer, text: answer.text.replace('}', ',"x":1}') }), /additional properties/)
    const error = '{"error":"x","code":"TEAM_NOT_FOUND","message":"m","hint":"h","docs":"d"}'
    await assert.rejects(checkAnswer({ ...answer, status: 401, text: error }), /declare it/)
    await assert.rejects(checkAnswer({ ...answer, path: '/v1/nothing' }), /no such operation/)
  })

  it('the OpenAPI document gives no optional header a single value, which tools would fill in and send', () => {
    for (const { name, operation } of operations()) {
      const parameters = [...(operation.parameters ?? []), ...Object.values<Json>(document.components.parameters)]
      for (const { in: place, name: header, schema } of parameters.filter(({ required }: Json) => !required)) {
        if (place === 'header') assert.equal(schema.enum ?? schema.const, undefined, `${name} ${header}`)
      }
    }
    const { parameters, responses } = document.paths['/v1/call/trivia/questions'].get
    assert.deepEqual([...new Set(parameters.map((parameter: Json) => parameter.in))], ['query'])
    assert.equal(responses[202], undefined)
  })

  it('the OpenAPI document keeps no description inside a union with null, where generators drop it', () => {
    const hidden: string[] = []
    const visit = (value: Json, place: string): void => {
      if (typeof value !== 'object' || value === null) return
      if (Array.isArray(value.anyOf) && value.anyOf.some(({ type }: Json) => type === 'null')) {
        if (!value.description && value.anyOf.some(({ description }: Json) => description)) hidden.push(place)
      }
      for (const [key, inner] of Object.entries(value)) visit(inner, `${place}/${key}`)
    }
    visit(document, '#')
    assert.deepEqual(hidden, [])
    assert.deepEqual(document.components.schemas.WeatherCurrent.properties.is_day, {
      type: ['number', 'null'],
      description: '1 by day, 0 by night',
    })
  })

  it('the OpenAPI document names the codes that each status can have', () => {
    const { content } = document.components.responses.CallError402
    const { code } = content['application/json'].schema.properties.error.properties
    assert.deepEqual(code.enum, ['PLAN_UPGRADE_REQUIRED'])
    const login = document.paths['/v1/auth/login'].post.responses[401].content['application/json'].schema
    assert.deepEqual(login.properties.code.enum, ['INVALID_CREDENTIALS'])
    const creation = document.paths['/v1/keys'].post.responses[400].content['application/json'].schema
    assert.deepEqual(creation.properties.code.enum, ['VALIDATION_ERROR', 'INVALID_JSON', 'INVALID_ENCODING'])
  })

  it('the OpenAPI document shows an example of each JSON body, which fits its schema', () => {
    const ajv = new Ajv2020({ strict: false })
    formats.default(ajv)
    ajv.addSchema(document, 'document')
    const check = (name: string, media: Json): void => {
      const example = media.example ?? Object.values<Json>(media.examples ?? {})[0]?.value
      assert.notEqual(example, undefined, `${name} has no example`)
      assert.ok(!/(?<!\\)""/.test(JSON.stringify(example)) || name.includes('/v1/call'), `${name} has an empty text`)
      JSON.stringify(example, (member, value) => {
        assert.ok(typeof value !== 'string' || value !== member, `${name}: ${member} is no value`)
        return value
      })
      const schema = JSON.parse(JSON.stringify(media.schema).replaceAll('"#/', '"document#/'))
      assert.ok(ajv.validate(schema, example), `${name}: ${ajv.errorsText()} ${JSON.stringify(example)}`)
    }
    for (const { name, operation } of operations()) {
      if (operation.requestBody) check(`${name} body`, operation.requestBody.content['application/json'])
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        const { content } = response.$ref ? document.components.responses[response.$ref.split('/').at(-1)] : response
        // A document is its own example.
        if (!content || !status.startsWith('2') || !/^\S+ \/(v1|mcp|healthz|readyz)/.test(name)) continue
        for (const [type, media] of Object.entries<Json>(content)) check(`${name} ${status} ${type}`, media)
      }
    }
  })

  it('the OpenAPI document has examples with the members with which the service answers', async () => {
    /**
     * The names of all members, at any depth. If a value is null or an empty list, it tells nothing
     * about its members.
     */
    const membersOf = (value: Json, place = ''): string[] =>
      Array.isArray(value)
        ? membersOf(value[0], `${place}[]`)
        : value === null || typeof value !== 'object'
          ? []
          : Object.entries(value).flatMap(([name, member]) => [
              `${place}.${name}`,
              ...membersOf(member, `${place}.${name}`),
            ])
    const isTold = (place: string, answer: Json): boolean => {
      const holder = place.slice(0, place.lastIndexOf('.'))
      return holder === '' || membersOf(answer).some((member) => member.startsWith(`${holder}.`))
    }
    const compared: string[] = []
    const compare = (id: string, { status, body }: { status: number; body: Json }, type = 'application/json') => {
      const { operation } = operations().find((one) => one.operation.operationId === id) ?? assert.fail(id)
      const { example, examples } = operation.responses[status].content[type]
      const shown = example ?? Object.values<Json>(examples)[0].value
      const [ofExample, ofAnswer] = [membersOf(shown), membersOf(body)]
      assert.deepEqual(
        ofExample.filter((place) => isTold(place, body) && !ofAnswer.includes(place)),
        [],
        `${id}: only in the example`,
      )
      assert.deepEqual(
        ofAnswer.filter((place) => isTold(place, shown) && !ofExample.includes(place)),
        [],
        `${id}: only in the answer`,
      )
      compared.push(id)
    }
    const { token, test: key, email, password } = await signUp(gateway)
    const friend = await signUp(gateway)
    const ask = async (id: string, path: string, options: Parameters<typeof send>[2] = {}) => {
      const answer = await send(gateway, path, { token, ...options })
      compare(id, answer)
      return answer.body
    }
    await ask('getHealthz', '/healthz')
    await ask('getReadyz', '/readyz')
    await ask('signup', '/v1/auth/signup', { body: { email: `new-${email}`, password } })
    await ask('login', '/v1/auth/login', { body: { email, password } })
    await ask('getMe', '/v1/me')
    await ask('readVerification', '/v1/auth/verification')
    await ask('getBillingStatus', '/v1/billing/status')
    await ask('createKey', '/v1/keys', { body: {} })
    await ask('listKeys', '/v1/keys')
    await ask('getCatalog', '/v1/catalog?q=weather')
    await ask('getCatalogBySlug', '/v1/catalog/weather')
    const { team } = await ask('createTeam', '/v1/teams', { body: { name: 'Team' } })
    const path = `/v1/teams/${team.id}`
    await ask('updateTeam', path, { method: 'PUT', body: { name: 'Other' } })
    const { member } = await ask('createTeamMember', `${path}/members`, { body: { email: friend.email } })
    await ask('updateTeamMember', `${path}/members/${member.id}`, { method: 'PUT', body: { role: 'admin' } })
    await ask('listTeams', '/v1/teams')
    await ask('getTeam', path)
    await ask('transferTeam', `${path}/transfer`, { body: { memberId: member.id } })
    await ask('putProviderKey', '/v1/provider-keys/news', { method: 'PUT', body: { key: 'made-up-key-of-news' } })
    await ask('listProviderKeys', '/v1/provider-keys')
    const { parameters } = (await loadUpstreams()).get('weather')?.endpoints['/current']?.example ?? assert.fail()
    const calls = [{ ref: 'one', api: 'weather', endpoint: '/current', parameters }]
    await ask('batch', '/v1/batch', { key, token: undefined, body: { calls }, headers: { accept: 'application/json' } })
    const asynchronous = await send(gateway, '/v1/call/weather/current?latitude=1&longitude=2', {
      key,
      headers: { prefer: 'respond-async' },
    })
    const { content } = document.components.responses.CallAccepted
    assert.deepEqual(
      Object.keys(asynchronous.body).slice(0, 3),
      Object.keys(content['application/json'].example).slice(0, 3),
    )
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
    const accept = { accept: 'application/json, text/event-stream' }
    const arguments_ = { api: 'weather', endpoint: '/current', parameters }
    for (const [id, to, params] of [
      ['mcp', '/mcp', { name: 'call_api', arguments: arguments_ }],
      ['mcpOfApi', '/mcp/weather', { name: 'weather_current', arguments: parameters }],
    ] as const) {
      const answer = await send(gateway, to, { key, headers: accept, body: { ...message, params } })
      // The answer of a test call says that it is a test call.
      delete answer.body.result._meta['agent-api-gateway/x-gateway-mode']
      compare(id, answer)
    }
    await until(async () => (await send(gateway, '/v1/usage', { token })).body.usage.length > 0)
    await ask('getUsage', '/v1/usage')
    assert.equal(compared.length, 24)
  })

  it('the OpenAPI document lists the APIs first, and every tag in one group', () => {
    const [apis, ...others] = document['x-tagGroups']
    assert.equal(apis.tags.length, 28)
    const grouped = [apis, ...others].flatMap(({ tags }: Json) => tags)
    assert.deepEqual(grouped.toSorted(), document.tags.map(({ name }: Json) => name).toSorted())
  })

  it('the OpenAPI document says of each answer its status or default: generators make no types of status ranges', () => {
    const named = operations().flatMap(({ operation }) => Object.keys(operation.responses))
    assert.ok(named.length > 100)
    for (const status of named) assert.match(status, /^([1-5]\d\d|default)$/)
  })

  it('the OpenAPI document has no operation with a repeated word in its name, and no schema with the name of a type that generators make for an operation', () => {
    const names = operations().map(({ operation }) => operation.operationId)
    for (const name of ['ipLookup', 'publicHolidays', 'weatherCurrent', 'putProviderKey'])
      assert.ok(names.includes(name))
    const made = names.flatMap((name: string) =>
      ['Data', 'Error', 'Errors', 'Response', 'Responses'].map((kind) => name + kind),
    )
    const taken = new Set(made.map((name) => name.toLowerCase()))
    const schemas = Object.keys(document.components.schemas)
    assert.deepEqual(
      schemas.filter((name) => taken.has(name.toLowerCase())),
      [],
    )
  })

  describe('clients made from it', () => {
    before(async () => {
      await writeFile(join(folder, 'package.json'), '{"type":"module"}')
      await writeFile(join(folder, 'paths.ts'), await openapiTypescript(document))
      await writeFile(join(folder, 'fetch-client.ts'), FETCH_CLIENT)
      for (const file of ['client.ts', 'client.py']) {
        await writeFile(join(folder, file), await (await fetch(`${gateway.url}/${file}`)).text())
      }
      await writeFile(join(folder, 'file-client.ts'), FILE_CLIENT)
      // One run of the compiler for both, because it reads the same declarations.
      await compile(folder, ['fetch-client.ts', 'file-client.ts'])
    })

    it('the OpenAPI document makes a client, by openapi-typescript, whose typed call compiles and is answered', async () => {
      const { current } = await import(pathToFileURL(join(folder, 'out', 'fetch-client.js')).href)
      assert.equal(await current(gateway.url, account.test), 15.3)
      await assert.rejects(current(gateway.url, 'agw_test_wrong'), { message: 'INVALID_API_KEY' })
    })

    it('serves one in TypeScript whose typed call compiles and is answered, and whose errors tell what to do', async () => {
      const { current, failure, others } = await import(pathToFileURL(join(folder, 'out', 'file-client.js')).href)
      assert.equal(await current(gateway.url, account.test), 15.3)
      assert.deepEqual(await others(gateway.url, account.test), ['number', true, true, [400, 200], 'EUR'])
      const { code, status, hint, requestId } = await failure(gateway.url, account.test)
      assert.deepEqual([code, status], ['INVALID_PARAMETER', 400])
      assert.match(hint, /param=from/)
      assert.match(requestId, /^req_/)
    })

    it('serves one in Python whose call is answered, and whose errors tell what to do', async (context) => {
      if (!(await run('python3', ['--version']).catch(() => undefined))) return context.skip('there is no python3 here')
      const { stdout } = await run('python3', ['-c', PYTHON, gateway.url, account.test], { cwd: folder })
      const [temperature, code, status, hint, requestId] = JSON.parse(stdout)
      assert.deepEqual([temperature, code, status], [15.3, 'INVALID_PARAMETER', 400])
      assert.match(hint, /param=from/)
      assert.match(requestId, /^req_/)
    })

    it('serves a collection whose every call is answered 200 once the key is set', async () => {
      const collection: Json = await (await fetch(`${gateway.url}/postman.json`)).json()
      const { auth } = collection
      assert.deepEqual(
        auth.apikey.map(({ value }: Json) => value),
        ['X-Api-Key', '{{apiKey}}', 'header'],
      )
      const folders = collection.item.filter(({ name }: Json) => name !== 'Account' && name !== 'News')
      assert.equal(folders.length, 27)
      for (const { request } of folders.flatMap(({ item }: Json) => item)) {
        const { host, path, query = [] } = request.url
        const sent = query.filter(({ disabled }: Json) => !disabled).map(({ key, value }: Json) => [key, value])
        const base = host[0].replace('{{baseUrl}}', gateway.url)
        const url = `${base}/${path.join('/')}?${new URLSearchParams(sent)}`
        const answer = await fetch(url, { headers: { 'x-api-key': account.test } })
        assert.equal(answer.status, 200, `${url} ${await answer.text()}`)
      }
    })
  })
})

const FETCH_CLIENT = `
import createClient from 'openapi-fetch'
import type { paths } from './paths.ts'

export async function current(baseUrl: string, key: string): Promise<number | null> {
  const client = createClient<paths>({ baseUrl, headers: { 'X-Api-Key': key } })
  // @ts-expect-error: latitude is a number, and longitude is missing
  const wrong = () => client.GET('/v1/call/weather/current', { params: { query: { latitude: 'north' } } })
  // @ts-expect-error: there is no such path
  const none = () => client.GET('/v1/call/weather/yesterday', {})
  const { data, error } = await client.GET('/v1/call/weather/current', {
    params: { query: { latitude: 40.71, longitude: -74.01 } },
  })
  if (error) throw new Error(error.error.code)
  // @ts-expect-error: there is no such code
  const isUnknown = (failure: typeof error) => failure.error.code === 'NO_SUCH_CODE'
  return data.data.temperature_c
}
`

const FILE_CLIENT = `
import { Gateway, GatewayError } from './client.ts'

export async function current(baseUrl: string, key: string): Promise<number | null> {
  const gateway = new Gateway({ key, baseUrl })
  // @ts-expect-error: latitude is a number, and longitude is missing
  const wrong = () => gateway.weather.current({ latitude: 'north' })
  const { temperature_c } = await gateway.weather.current({ latitude: 40.71, longitude: -74.01 })
  return temperature_c
}

export async function failure(baseUrl: string, key: string): Promise<GatewayError | undefined> {
  try {
    await new Gateway({ key, baseUrl }).currency.pair({ from: 'nowhere', to: 'EUR' })
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  return undefined
}

/** The statuses of a batch, and the result of a call that was started, with ids and types. */
export async function others(baseUrl: string, key: string): Promise<unknown[]> {
  const gateway = new Gateway({ key, baseUrl })
  const { data, meta } = await gateway.answer('currency/pair', { from: 'USD', to: 'EUR' })
  const rate: number | null = data.rate
  const { results } = await gateway.batch([{ api: 'weather', endpoint: 'current' }, { api: 'currency', endpoint: 'latest' }])
  const base: string | null = (await (await gateway.start('currency/latest')).result()).base
  return [typeof rate, meta.isTest, meta.callId?.startsWith('call_'), results.map(({ status }) => status), base]
}
`

const PYTHON = `
import json, sys
from client import Gateway, GatewayError

gateway = Gateway(sys.argv[2], base_url=sys.argv[1])
temperature = gateway.weather.current(latitude=40.71, longitude=-74.01)["temperature_c"]
results = gateway.batch([{"api": "weather", "endpoint": "current"}, {"api": "currency", "endpoint": "latest"}])["results"]
assert [result["status"] for result in results] == [400, 200], results
assert gateway.start("currency", "latest").result()["base"] == "EUR"
try:
    gateway.currency.pair(from_="nowhere", to="EUR")
except GatewayError as error:
    print(json.dumps([temperature, error.code, error.status, error.hint, error.request_id]))
`

const OPTIONS = [
  '--ignoreConfig', '--target', 'es2024', '--module', 'nodenext', '--strict', '--skipLibCheck',
  '--allowImportingTsExtensions', '--rewriteRelativeImportExtensions', '--lib', 'es2024,dom,dom.iterable', '--types', 'node',
] // biome-ignore format: a command line

/** Compiles into the folder `out`. */
async function compile(folder: string, files: string[]): Promise<void> {
  const { stdout = '', code } = await run(join(BIN, 'tsc'), [...OPTIONS, '--outDir', 'out', ...files], {
    cwd: folder,
  }).catch((error) => error)
  assert.ok(!code, stdout)
}
