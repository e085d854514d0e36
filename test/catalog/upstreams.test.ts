import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Api, loadCatalog } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { sourceNamed, sourcesOf } from '../../src/catalog/fallback.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { ResponseClass } from '../../src/catalog/response-class.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import { type Interpretation, interpretAnswers } from '../../workers/upstream/interpret.ts'
import { buildWireRequest } from '../../workers/upstream/upstream-request.ts'
import { mutated } from '../support/json-mutation.ts'
import { type SpecParameter, specTable } from '../support/spec-table.ts'
import { completed, contextAt, endpointAt, fits, requestsOf, urlOf, validatorOf } from '../support/upstream-call.ts'

const folder = new URL('../../src/upstreams/', import.meta.url)
const slugs = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .sort()

const RUNS = 300

const catalog = await loadCatalog(new Map())
/** The number of texts that the tests tried as a parameter, over all endpoints. */
let hostileTexts = 0

test('every API of the specification has a file, and each further file adds an API', () => {
  assert.deepEqual(
    Object.keys(specTable).filter((slug) => !slugs.includes(slug)),
    [],
  )
})

/** Endpoints that answer with a list, and where their upstream's answer has it. */
const LISTS: [string, string, string?][] = [
  ['sports-scores', '/nfl', 'events'],
  ['sports-scores', '/nba', 'events'],
  ['sports-scores', '/mlb', 'events'],
  ['mock-data', '/comments'],
  ['countries', '/name'],
  ['countries', '/info'],
  ['news', '/top', 'articles'],
  ['news', '/search', 'articles'],
  ['geocoding', '/search'],
  ['meal-recipes', '/search', 'meals'],
  ['meal-recipes', '/by-ingredient', 'meals'],
  ['meal-recipes', '/categories', 'categories'],
  ['public-holidays', '/holidays'],
  ['public-holidays', '/next'],
  ['prediction-markets', '/markets', 'markets'],
  ['prediction-markets', '/events', 'events'],
  ['trivia', '/questions', 'results'],
  ['dictionary', '/define'],
  ['code-host-search', '/repos', 'items'],
]

test('a list whose items all have another form is not read as an empty list', async () => {
  for (const [slug, path, member] of LISTS) {
    const upstream = await loadUpstream(slug)
    const endpoint = endpointAt(upstream, path)
    const { response, parameters } = endpoint.example
    const moved = [{ items: 1 }, { moved: { name: 'a' } }]
    for (const items of [['a text'], [null], [['a', 'list']], [1, true], moved]) {
      const body = member === undefined ? items : { ...(response as object), [member]: items }
      const context = contextAt(endpoint)
      const call = { parameters: completed(endpoint, parameters, context), context }
      const read = interpretAnswers({ upstream, endpoint }, [{ status: 200, headers: {}, body }], call)
      const code = 'responseClass' in read ? read.responseClass.code : JSON.stringify(read.data)
      assert.equal(code, 'UPSTREAM_INVALID_RESPONSE', `${slug}${path}`)
    }
  }
})

for (const slug of slugs) {
  test(slug, async (t) => {
    const upstream = await loadUpstream(slug)

    const spec = specTable[slug]
    if (spec) {
      await t.test('its endpoints are the endpoints of the specification', () => {
        assert.deepEqual(Object.keys(upstream.endpoints).sort(), Object.keys(spec).sort())
      })
    }

    for (const path of Object.keys(upstream.endpoints)) {
      if (spec) {
        await t.test(`${path}: its parameters and data match the specification`, () => {
          checkSpec(endpointAt(upstream, path), slug, path)
        })
      }
      await t.test(`${path}: its example makes a request and maps to its data`, () => {
        checkExample(upstream, endpointAt(upstream, path))
      })
      await t.test(`${path}: every change of its example maps to fitting data or a responseClass`, () => {
        checkChangedAnswers(upstream, endpointAt(upstream, path))
      })
      await t.test(`${path}: whatever JSON comes with whatever status maps to fitting data or a responseClass`, () => {
        checkArbitraryAnswers(upstream, endpointAt(upstream, path))
      })
      await t.test(`${path}: no text as a parameter leads anywhere but to its own resource`, () => {
        checkHostileTexts(slug, path)
      })
    }
  })
}

for (const { slug, upstream } of sourcesOf(catalog).filter((source) => !slugs.includes(source.slug))) {
  test(slug, async (t) => {
    for (const [path, endpoint] of Object.entries(upstream.endpoints)) {
      await t.test(`${path}: its example makes a request and maps to its data`, () => checkExample(upstream, endpoint))
      await t.test(`${path}: every change of its example maps to fitting data or a responseClass`, () => {
        checkChangedAnswers(upstream, endpoint)
      })
      await t.test(`${path}: whatever JSON comes with whatever status maps to fitting data or a responseClass`, () => {
        checkArbitraryAnswers(upstream, endpoint)
      })
      await t.test(`${path}: no text as a parameter leads anywhere but to its own resource`, () => {
        checkHostileTexts(slug, path)
      })
    }
  })
}

test('thousands of hostile texts never change which address a request goes to', () => {
  assert.ok(hostileTexts >= 2_000, `${hostileTexts}`)
})

/** Sources know one form of a text, and stored answers are found by it. */
test('the two Unicode forms of a text make the same request', () => {
  const different: string[] = []
  let compared = 0
  for (const { slug, upstream } of catalog.values()) {
    for (const [path, endpoint] of Object.entries(upstream.endpoints)) {
      for (const name of Object.keys((endpoint.parameters as unknown as ObjectSchema).properties)) {
        const requestsFor = (text: string) =>
          requestsUnlessRefused(endpoint, { ...endpoint.example.parameters, [name]: text })?.requests
        const [composed, decomposed] = ['NFC', 'NFD'].map((form) => requestsFor('Café Ångström'.normalize(form)))
        if (!composed && !decomposed) continue
        compared += 1
        if (JSON.stringify(composed) !== JSON.stringify(decomposed)) different.push(`${slug}${path} ${name}`)
      }
    }
  }
  assert.deepEqual(different, [])
  assert.ok(compared >= 8, `${compared} parameters take such a text`)
})

async function loadUpstream(slug: string): Promise<Upstream> {
  const loaded: { default: Upstream } = await import(new URL(`${slug}.ts`, folder).href)
  return loaded.default
}

function checkSpec(endpoint: Endpoint, slug: string, path: string): void {
  const spec = specTable[slug]?.[path]
  assert.ok(spec, 'not in the specification')
  const { properties, required = [] } = endpoint.parameters as unknown as ObjectSchema
  assert.deepEqual(Object.keys(properties).sort(), Object.keys(spec.parameters).sort())
  for (const [name, stated] of Object.entries(spec.parameters)) {
    assert.deepEqual(declaredAs(properties[name] ?? {}, required.includes(name), stated), stated, name)
  }
  const data = endpoint.data as unknown as ObjectSchema
  for (const field of spec.data) {
    assert.ok(data.properties[field], `data.${field} is not declared`)
    assert.ok(data.required?.includes(field), `data.${field} is not always present`)
  }
}

interface ObjectSchema {
  properties: Record<string, Record<string, unknown>>
  required?: string[]
}

/**
 * A declared parameter in the terms of the specification. If the specification states no bound, the
 * bound is left out, because an upstream has bounds of its own. If it states no default or list of
 * values, ours would be an invention, so it stays.
 */
function declaredAs(schema: Record<string, unknown>, required: boolean, stated: SpecParameter): SpecParameter {
  const choices = choicesOf(schema)
  const type = schema.type ?? typeof choices?.[0]
  const declared: Record<string, unknown> = { type: type === 'integer' ? 'number' : type, required }
  if (schema.default !== undefined) declared.default = schema.default
  if (choices) declared.enum = choices
  for (const bound of ['minimum', 'maximum'] as const) {
    if (stated[bound] !== undefined) declared[bound] = schema[bound]
  }
  return declared as unknown as SpecParameter
}

function choicesOf(schema: Record<string, unknown>): unknown[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map((member) => member.const)
  return undefined
}

function checkExample(upstream: Upstream, endpoint: Endpoint): void {
  const { example } = endpoint
  // If an example has no day of its own, it holds on any day.
  for (const now of example.now ? [example.now] : ['2001-01-01T00:00:00Z', '2099-12-31T23:59:59Z']) {
    const context = contextAt(endpoint, now)
    const requests = requestsOf(endpoint, example.parameters, context)
    for (const request of requests) checkRequest(upstream, urlOf(upstream, request))
    const bodies = requests.length > 1 ? (example.response as unknown[]) : [example.response]
    assert.equal(bodies.length, requests.length)
    const answers = bodies.map((body) => answerWith(body))
    const parameters = completed(endpoint, example.parameters, context)
    assert.deepEqual(interpretAnswers({ upstream, endpoint }, answers, { parameters, context }), { data: example.data })
  }
  assert.ok(validatorOf(endpoint.data).Check(example.data), 'the example does not fit the data schema')
  const declared = Object.keys((endpoint.data as unknown as ObjectSchema).properties)
  for (const member of Object.keys(example.data)) assert.ok(declared.includes(member), `data.${member} is not declared`)
}

/** The address keeps the origin and the prefix of the base URL. */
function checkRequest(upstream: Upstream, url: URL): void {
  const base = new URL(upstream.baseUrl)
  assert.equal(url.origin, base.origin)
  assert.ok(url.pathname.startsWith(base.pathname.replace(/\/$/, '')), url.href)
  assert.equal(url.hash, '')
}

function checkChangedAnswers(upstream: Upstream, endpoint: Endpoint): void {
  const { several, bodies } = recordedBodies(endpoint)
  const changed = bodies.map((body) => mutated(body))
  fc.assert(
    fc.property(fc.tuple(...changed), (changedBodies) => {
      checkInterpretation(
        upstream,
        endpoint,
        changedBodies.map((body) => answerWith(body)),
      )
    }),
    { numRuns: RUNS, examples: several ? [] : [[[null]], [[[]]], [[{}]], [['']], [[undefined]]] },
  )
}

function checkArbitraryAnswers(upstream: Upstream, endpoint: Endpoint): void {
  const { bodies } = recordedBodies(endpoint)
  const otherStatus = fc.constantFrom(...(endpoint.acceptStatuses ?? []), 204, 400, 401, 403, 404, 429, 500, 503)
  const answer = fc.record({
    status: fc.oneof({ weight: 4, arbitrary: fc.constant(200) }, { weight: 1, arbitrary: otherStatus }),
    body: fc.oneof(fc.jsonValue(), fc.constant(undefined)),
  })
  fc.assert(
    fc.property(fc.array(answer, { minLength: bodies.length, maxLength: bodies.length }), (answers) => {
      checkInterpretation(
        upstream,
        endpoint,
        answers.map(({ status, body }) => answerWith(body, status)),
      )
    }),
    { numRuns: RUNS },
  )
}

function checkInterpretation(upstream: Upstream, endpoint: Endpoint, answers: UpstreamResponse[]): void {
  const context = contextAt(endpoint)
  const parameters = completed(endpoint, endpoint.example.parameters, context)
  const interpretation: Interpretation = interpretAnswers({ upstream, endpoint }, answers, { parameters, context })
  if ('data' in interpretation) {
    assert.ok(validatorOf(endpoint.data).Check(interpretation.data))
    return
  }
  assert.ok(interpretation.responseClass instanceof ResponseClass)
  if (interpretation.cause !== undefined) assert.match(String(interpretation.cause), /^Error: mapped data does not fit/)
}

function recordedBodies(endpoint: Endpoint): { several: boolean; bodies: unknown[] } {
  const several = requestsOf(endpoint, endpoint.example.parameters).length > 1
  return { several, bodies: several ? (endpoint.example.response as unknown[]) : [endpoint.example.response] }
}

function answerWith(body: unknown, status = 200): UpstreamResponse {
  return { status, headers: { 'content-type': 'application/json' }, body }
}

/**
 * Texts that would change a path, start another part of an address, break a header, or be read in
 * two ways.
 */
// biome-ignore format: a list to look through
const hostileFragments = [
  '.', '..', '...', './', '../', '/', '//', '/.', '/..', '/../', '../../..', '..;/', '\\', '\\..', '..\\', 'a/b',
  '%', '%2e', '%2e%2e', '%2E%2e/', '%2f', '%5c', '%252e%252e', '%00', '%zz',
  '?', '?x=1', '&x=1', '&apikey=1', '=', ';x=1', '#', '#f', '+', '*', '~', '$&', '|', '^', '`', "'", '"', '{}', '<script>',
  '@', '@evil.example', ':80', ':80@evil.example/', '//evil.example/', 'http://evil.example/', 'https:evil.example',
  'http://169.254.169.254/', 'file:///etc/passwd', '[::1]',
  ' ', '\t', '\n', '\r\n', '\r\nhost: evil.example', '\0', '\u0085', '\u2028', '\ufeff', '\u202e',
  '\ud800', '\udc00', '\ud83d\ude00', '\uff0e\uff0e', '\u2025', '\uff0f', '\u3002', 'İ', 'ß',
  'a'.repeat(2_000), '../'.repeat(667),
]

/** The fragments alone and at both ends of a text that the endpoint takes. */
function hostileTextsFor(usual: string): string[] {
  return hostileFragments.flatMap((fragment) => [fragment, `${usual}${fragment}`, `${fragment}${usual}`])
}

function checkHostileTexts(slug: string, path: string): void {
  const api = sourceNamed(catalog, slug)
  assert.ok(api)
  const endpoint = endpointAt(api.upstream, path)
  const example = endpoint.example.parameters
  const schemas = (endpoint.parameters as unknown as ObjectSchema).properties
  for (const [name, schema] of Object.entries(schemas)) {
    if (declaredAs(schema, true, { type: 'string', required: true }).type !== 'string') continue
    for (const text of hostileTextsFor(String(example[name] ?? choicesOf(schema)?.[0] ?? 'a'))) {
      hostileTexts += 1
      checkHostileText(api, endpoint, { ...example, [name]: text }, name)
    }
  }
}

/**
 * The gateway refuses the call, or each of its requests names the example's resource, with the text
 * as a single segment.
 */
function checkHostileText(api: Api, endpoint: Endpoint, given: Record<string, unknown>, name: string): void {
  const context = contextAt(endpoint)
  const [usual] = requestsOf(endpoint, endpoint.example.parameters, context)
  assert.ok(usual)
  const call = requestsUnlessRefused(endpoint, given)
  for (const request of call?.requests ?? []) {
    const url = wireUrl(api, request)
    checkRequest(api.upstream, url)
    assert.equal(url.username + url.password, '', url.href)
    const query = Object.entries(request.query ?? {}).filter(([, sent]) => sent !== undefined)
    assert.deepEqual(
      [...url.searchParams],
      query.map(([key, sent]) => [key, String(sent)]),
    )
    const value = String(call?.parameters[name])
    // A breed and its sub-breed are the one text that stands for two segments.
    const parts = name === 'breed' ? value.split('/') : [value]
    const segments = url.pathname.split('/')
    assert.equal(segments.length, wireUrl(api, usual).pathname.split('/').length + parts.length - 1, url.href)
    const held = [...segments.map(decodeURIComponent), ...url.searchParams.values()]
    for (const part of parts) assert.ok(held.includes(part), `${JSON.stringify(value)} is not held by ${url.href}`)
  }
}

function requestsUnlessRefused(endpoint: Endpoint, given: Record<string, unknown>) {
  if (!fits(endpoint, given)) return undefined
  try {
    const context = contextAt(endpoint)
    const parameters = completed(endpoint, given, context)
    return { parameters, requests: [endpoint.request(parameters, context)].flat() }
  } catch (error) {
    assert.ok(error instanceof InvalidParameter, `${JSON.stringify(given)}: ${error}`)
    return undefined
  }
}

function wireUrl(api: Api, request: UpstreamRequest): URL {
  const contact = 'https://gateway.example'
  const { origin, path } = buildWireRequest(api, request, { extra: [], key: undefined, contact })
  return new URL(origin + path)
}
