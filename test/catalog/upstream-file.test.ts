/** How files in src/upstreams declare upstreams, endpoints and parameters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { record, required } from '../../src/catalog/fields.ts'
import { InvalidParameter, lowerCased, trimmed } from '../../src/catalog/parameter-values.ts'
import {
  latitude,
  namesOf,
  type ObjectOfParameters,
  optional,
  type Parameters,
  param,
  TEXT_LENGTH_MAX,
} from '../../src/catalog/parameters.ts'
import { invalid, notFound } from '../../src/catalog/response-class.ts'
import { endpoint, upstream, words } from '../../src/catalog/upstream-file.ts'
import { path } from '../../src/catalog/upstream-request.ts'

type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false

const description = 'What it means'
const context = { now: 0 }
const named = record({ name: required.text('name', description) })
const example = { parameters: {}, response: { name: 'x' }, data: { name: 'x' } }
const request = () => ({ path: path`/thing` })

const declared = {
  q: param.text(description, { normalize: trimmed }),
  code: optional(param.text(description, { minLength: 2, maxLength: 2, pattern: '^[A-Z]+$', normalize: lowerCased })),
  limit: param.integer(description, { minimum: 1, maximum: 9, default: 3 }),
  kind: optional(param.oneOf(['one', 'other'], description)),
  order: param.oneOf(['up', 'down'], description, { default: 'up' }),
  lat: param.number(description, { minimum: -90, maximum: 90 }),
}

test('parameters make one schema, with the members of each in the order of the documents', () => {
  const { parameters } = endpoint({ description, parameters: declared, data: named, request, example })
  assert.equal(
    JSON.stringify(parameters),
    JSON.stringify({
      type: 'object',
      required: ['q', 'lat'],
      properties: {
        q: { type: 'string', minLength: 1, maxLength: TEXT_LENGTH_MAX, description },
        code: { type: 'string', minLength: 2, maxLength: 2, pattern: '^[A-Z]+$', description },
        limit: { type: 'integer', minimum: 1, maximum: 9, default: 3, description },
        kind: { enum: ['one', 'other'], description },
        order: { enum: ['up', 'down'], default: 'up', description },
        lat: { type: 'number', minimum: -90, maximum: 90, description },
      },
    }),
  )
  const schema = Compile(parameters)
  assert.ok(schema.Check({ q: 'x', lat: 1 }))
  for (const wrong of [{ lat: 1 }, { q: '', lat: 1 }, { q: 'x', lat: 1, limit: 1.5 }, { q: 'x', lat: 1, kind: 'up' }])
    assert.ok(!schema.Check(wrong), JSON.stringify(wrong))
})

test('an endpoint has the types of its parameters: optional if callers may leave them out, and there if they have a default', () => {
  interface Values {
    q: string
    code?: string
    limit: number
    kind?: 'one' | 'other'
    order: 'up' | 'down'
    lat: number
  }
  const isThatType: Same<Static<ObjectOfParameters<typeof declared>>, Values> = true
  // @ts-expect-error: a default is one of the values.
  param.oneOf(['up', 'down'], description, { default: 'sideways' })
  assert.ok(isThatType)
})

test('each parameter that is there is normalized, then all are completed together', () => {
  const { complete } = endpoint({
    description,
    parameters: declared,
    data: named,
    complete: (parameters) => ({ ...parameters, q: `${parameters.q}-${parameters.code ?? 'none'}` }),
    request,
    example,
  })
  const given = { q: ' a ', limit: 3, order: 'up', lat: 0 }
  assert.deepEqual(complete?.(given, context), { ...given, q: 'a-none' })
  assert.deepEqual(complete?.({ ...given, code: 'DE' }, context), { ...given, q: 'a-de', code: 'de' })
  assert.equal(given.q, ' a ')
  assert.throws(
    () => complete?.({ ...given, q: ' ' }, context),
    (error) => error instanceof InvalidParameter && error.parameter === 'q',
  )
})

test('an endpoint whose parameters need no completion has none, and one without parameters takes none', () => {
  const { complete, parameters } = endpoint({ description, data: named, request, example })
  assert.equal(complete, undefined)
  assert.deepEqual(parameters.properties, {})
})

test('a parameter accepts the names that other APIs use for it, in addition to its own name', () => {
  const aliasesOf = (parameters: Parameters) =>
    endpoint({ description, parameters, data: named, request, example }).aliases
  const q = param.text(description, { aliases: namesOf.query })
  assert.deepEqual(aliasesOf({ q, lat: latitude, limit: optional(param.integer(description)) }), {
    q: ['query'],
    lat: ['latitude'],
  })
  assert.deepEqual(aliasesOf({ query: optional(q) }), { query: ['q'] })
  assert.equal(aliasesOf({ limit: param.integer(description) }), undefined)
})

test('data are read from the body, or from what the endpoint names; what has no record is invalid', () => {
  const mapOf = (readFrom?: (input: { body: unknown }) => unknown) => {
    const { map } = endpoint({ description, data: named, request, ...(readFrom && { readFrom }), example })
    return (body: unknown) => map({ body, bodies: [body], parameters: {}, context })
  }
  assert.deepEqual(mapOf()({ name: 'x', other: 1 }), { name: 'x' })
  assert.deepEqual(mapOf(({ body }) => ({ name: body }))('y'), { name: 'y' })
  for (const body of [undefined, null, [], 'x', {}, { name: 1 }]) assert.deepEqual(mapOf()(body), invalid())
  assert.deepEqual(mapOf(() => undefined)({ name: 'x' }), invalid())
  assert.deepEqual(mapOf(() => notFound('It is not there.'))({ name: 'x' }), notFound('It is not there.'))
})

test('an upstream is for developers and needs no key, unless its file says so', () => {
  const common = {
    ...{ displayName: 'Things', category: 'test', description, tags: [], keywords: words('thing item') },
    ...{ terms: { summary: 'None.' }, baseUrl: 'https://things.example', caps: { concurrency: 1, rates: [] } },
    ...{ probe: { request: request(), everySeconds: 60 }, endpoints: {} },
  }
  const credential = { accessMode: 'byok_available', in: 'header', name: 'x-key' } as const
  assert.deepEqual(upstream(common), { ...common, tierRequired: 'developer' })
  assert.deepEqual(upstream({ ...common, tierRequired: 'pro', credential }), {
    ...{ ...common, tierRequired: 'pro', credential: { ...credential, required: false } },
  })
  assert.equal(upstream({ ...common, credential: { ...credential, required: true } }).credential?.required, true)
  assert.deepEqual(common.keywords, ['thing', 'item'])
})
