import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import openapiTypescript from 'openapi-typescript'
import { generateApi } from 'swagger-typescript-api'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { checkAnswer } from '../support/answer-check.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

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
    gateway = await startGateway({ environment: { BASE_URL, PLAN_LIMITS: '{"Free":{"perMinute":1000}}' } })
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

  it('is version 3.1.0 of interface 0.3.0 and lists this server alone', () => {
    assert.equal(document.openapi, '3.1.0')
    assert.equal(document.info.version, '0.3.0')
    assert.deepEqual(
      document.servers.map(({ url }: Json) => url),
      [BASE_URL],
    )
  })

  it('passes the recommended rules of redocly lint without a warning', async () => {
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

  it('gives every route a summary, a known tag, a name of its own and a described success', () => {
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

  it('writes out every endpoint of every API with its declared parameters and its recorded answer', async () => {
    for (const [slug, { endpoints }] of await loadUpstreams()) {
      for (const [path, endpoint] of Object.entries(endpoints)) {
        const { get } = document.paths[`/v1/call/${slug}${path}`]
        const parameters = get.parameters.filter((parameter: Json) => parameter.in === 'query')
        assert.deepEqual(
          parameters.map(({ name, required }: Json) => [name, required]),
          Object.keys(endpoint.parameters.properties).map((name) => [
            name,
            (endpoint.parameters.required ?? []).includes(name),
          ]),
        )
        const { examples, schema } = get.responses[200].content['application/json']
        assert.deepEqual(examples.recorded.value.data, JSON.parse(JSON.stringify(endpoint.example.data)))
        assert.match(schema.properties.data.$ref, /^#\/components\/schemas\/\w+$/)
      }
    }
  })

  it('shows an error answer under its own status, with an example of each code', () => {
    for (const { name, operation } of operations()) {
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        if (Number(status) < 400) continue
        const { content } = response.$ref ? document.components.responses[response.$ref.split('/').at(-1)] : response
        const examples = Object.keys(content['application/json'].examples ?? {})
        for (const code of examples.map((example) => example.replace(/^call\./, ''))) {
          assert.equal(ERRORS[code as ErrorCode].status, Number(status), `${name} ${status}`)
        }
      }
    }
    const call = Object.keys(document.paths['/v1/call/weather/current'].get.responses).map(Number)
    for (const status of [200, 400, 401, 402, 404, 429, 500, 502, 503]) assert.ok(call.includes(status), `${status}`)
  })

  it('asks for the credentials that the routes ask for', async () => {
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

  it('refuses, in this suite, an answer that it does not describe', async () => {
    const answer = {
      node: gateway.url,
      method: 'GET',
      path: '/v1/me',
      requestHeaders: {},
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

  it('makes a client, by openapi-typescript, whose typed call compiles and is answered', async () => {
    await writeFile(join(folder, 'paths.ts'), await openapiTypescript(document))
    await writeFile(join(folder, 'fetch-client.ts'), FETCH_CLIENT)
    await compile(folder, 'fetch-client.ts')
    const { current } = await import(pathToFileURL(join(folder, 'fetch-client.ts')).href)
    assert.equal(await current(gateway.url, account.test), 15.3)
  })

  it('makes a client, by swagger-typescript-api, whose typed call compiles and is answered', async () => {
    const { files } = await generateApi({
      spec: document,
      silent: true,
      httpClientType: 'fetch',
      generateUnionEnums: true,
    })
    await writeFile(join(folder, 'Api.ts'), files.map(({ fileContent }) => fileContent).join('\n'))
    await writeFile(join(folder, 'class-client.ts'), CLASS_CLIENT)
    await compile(folder, 'class-client.ts')
    await run(join(BIN, 'tsc'), [...OPTIONS, '--outDir', 'out', 'class-client.ts'], { cwd: folder })
    const { latest } = await import(pathToFileURL(join(folder, 'out', 'class-client.js')).href)
    assert.equal(typeof (await latest(gateway.url, account.test)), 'number')
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
  const { data } = await client.GET('/v1/call/weather/current', { params: { query: { latitude: 40.71, longitude: -74.01 } } })
  if (data?.status !== 'success') throw new Error('no data')
  return data.data.temperature_c
}
`

const CLASS_CLIENT = `
import { Api } from './Api.ts'

export async function latest(baseUrl: string, key: string): Promise<number | undefined> {
  const api = new Api({ baseUrl, baseApiParams: { headers: { 'X-Api-Key': key } } })
  // @ts-expect-error: from is missing
  const wrong = () => api.v1.currencyPair({ to: 'EUR' })
  const { data } = await api.v1.currencyLatest({})
  if (data.status !== 'success') throw new Error('no data')
  return data.data.rates.USD ?? Object.values(data.data.rates)[0]
}
`

const OPTIONS = [
  '--ignoreConfig', '--target', 'es2024', '--module', 'nodenext', '--strict', '--skipLibCheck',
  '--allowImportingTsExtensions', '--rewriteRelativeImportExtensions', '--lib', 'es2024,dom,dom.iterable', '--types', 'node',
] // biome-ignore format: a command line

async function compile(folder: string, file: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  const { stdout = '', code } = await run(join(BIN, 'tsc'), [...OPTIONS, '--noEmit', file], { cwd: folder }).catch(
    (error) => error,
  )
  assert.ok(!code, stdout)
}
