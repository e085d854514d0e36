import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { Catalog, createApi } from '../../../src/catalog/catalog.ts'
import { requestTarget } from '../../../src/catalog/request-target.ts'
import { createDocument } from '../../../src/openapi/document.ts'
import type { DocumentedRoute } from '../../../src/openapi/route-list.ts'
import { check, document, readWritten, words } from '../../support/own-document.ts'

const FOLDER = new URL('../../own/makers/', import.meta.url)

/**
 * The operations that the gateway offers of each document, and how many lines explain the rest, by
 * file.
 */
const MAKERS: Record<string, { offers: string; lines: number; says: RegExp[] }> = {
  'fastapi.json': {
    offers: 'GET /read-items-items-get',
    lines: 3,
    says: [
      /parameter authorization is left out: the gateway sends it/,
      /POST and its effect is not stated/,
      /its media type is multipart\/form-data/,
    ],
  },
  'spring.json': {
    offers: 'GET /find-all-1, GET /health',
    lines: 3,
    says: [
      /required parameter pageable has a schema that allows more than a plain value/,
      /\/servers\/0\/url: The address is private/,
    ],
  },
  'nswag.json': { offers: 'GET /entries-get-entry, GET /entries-get-all, POST /entries-put', lines: 0, says: [] },
  'payments.yaml': {
    offers: 'GET /get-charges',
    lines: 4,
    says: [
      /parameter created is left out: it has the style deepObject, which the gateway does not support/,
      /~1charges\/post\/requestBody: .*its media type is application\/x-www-form-urlencoded/,
    ],
  },
  'code-host.yaml': {
    offers: 'GET /meta-root, GET /issues-list-for-repo',
    lines: 2,
    says: [
      /\/responses\/302: The operation is left out: its answers are redirects/,
      /the media type of its answer is text\/html/,
    ],
  },
  'cluster.json': {
    offers: 'GET /list-core-v1-namespaced-pod, GET /get-healthz',
    lines: 1,
    says: [/ignores the schema keyword uniqueItems here and at 2 other places/],
  },
  'messages.yaml': {
    offers: 'GET /list-message, GET /fetch-status',
    lines: 4,
    says: [
      /DateSent< is left out/,
      /\/post\/requestBody: The operation is left out/,
      /\/paths\/~1Media\/servers: .*its server differs from the server of the document/,
    ],
  },
  'pets.yaml': {
    offers: 'GET /list-pets, POST /create-pet',
    lines: 1,
    says: [/ignores the schema keyword prefixItems/],
  },
  'odata.yaml': {
    offers: 'GET /products-list-product, GET /products-get-product',
    lines: 3,
    says: [/If-Match is left out/, /its media type is multipart\/mixed;boundary=request-separator/],
  },
  'rails.yaml': { offers: 'GET /get-blogs, POST /post-blogs', lines: 0, says: [] },
  'go.yaml': {
    offers: '',
    lines: 2,
    says: [
      /\/servers\/0\/url: The address \/\/inventory\.example\.com\/v1 is not an http/,
      /DELETE and its effect is not stated/,
    ],
  },
  'webhooks.yaml': { offers: '', lines: 1, says: [/\/paths: The document must have a member paths that is an object/] },
}

describe('documents as different makers write them', () => {
  it('the operations of documents of many makers are offered as far as possible, and each part that is left out is reported', async () => {
    assert.deepEqual((await readdir(FOLDER)).sort(), Object.keys(MAKERS).sort())
    for (const [name, { offers, lines, says }] of Object.entries(MAKERS)) {
      const settings = { caps: { concurrency: 4, rates: [{ max: 5, seconds: 1 }] } }
      const written = { 'x-gateway': settings, ...parse(await readFile(new URL(name, FOLDER), 'utf8')) }
      const answer = await check(written, name)
      const offered = (answer.entry?.endpoints ?? []).map(({ method, path }) => `${method} ${path}`)
      assert.equal(offered.join(', '), offers, `${name}: ${words(answer)}`)
      const said = words(answer)
      for (const pattern of says) assert.match(said, pattern, name)
      assert.equal(said.split('\n').filter((line) => line !== '').length, lines, `${name}: ${said}`)
    }
  })

  it('the example of an answer comes from the document, also if it is written as JSON text, or is generated', async () => {
    const text = await check(document({ media: { example: '{"a":"x"}' } }))
    assert.equal(words(text), '')
    assert.equal(text.entry?.endpoints[0]?.example, 'document')
    assert.equal((await check(document())).entry?.endpoints[0]?.example, 'made')
    const properties = {
      name: { type: 'string', example: 'Rex' },
      tags: { type: 'array', items: { type: 'string', examples: ['good'] } },
      age: { type: 'integer', example: '7' },
      state: { type: 'string', enum: ['new'], example: 'old' },
    }
    const { upstream } = await readWritten(document({ schema: { type: 'object', properties } }))
    const [endpoint = assert.fail()] = Object.values(upstream?.endpoints ?? {})
    assert.deepEqual(endpoint.example.data, { name: 'Rex', tags: ['good'], age: 7, state: 'new' })
  })

  it('a refusal says to callers what its document declares as the text of an error, and nothing that it does not declare', async () => {
    const text = { type: 'string' }
    const schemas = {
      Problem: {
        allOf: [
          { type: 'object', properties: { title: text } },
          { properties: { detail: { $ref: '#/components/schemas/Text' } } },
        ],
      },
      Nested: { properties: { error: { properties: { message: { type: ['string', 'null'] } } } } },
      Flat: { properties: { error: text, message: { type: 'integer' } } },
      Text: text,
      Lost: { $ref: '#/components/schemas/Nowhere' },
      Round: { $ref: '#/components/schemas/Round' },
    }
    const body = { title: 'Bad', detail: 'limit is odd', error: { message: 'limit is\nodd' }, message: 'a stack' }
    const cases: [name: string, status: string, body: object, says: string | undefined][] = [
      ['Problem', '422', body, 'limit is odd'],
      ['Problem', '4XX', body, 'limit is odd'],
      ['Nested', 'default', body, 'limit is odd'],
      ['Flat', '400', { error: 'limit is odd', message: 'a stack' }, 'limit is odd'],
      ['Flat', '400', body, undefined],
      ['Lost', '400', body, undefined],
      ['Round', '400', body, undefined],
      ['Problem', '500', body, undefined],
    ]
    for (const [name, status, answer, says] of cases) {
      const content = { 'application/problem+json': { schema: { $ref: `#/components/schemas/${name}` } } }
      const ok = { description: 'ok', content: { 'application/json': { schema: {} } } }
      const responses = { 200: ok, [status]: { description: 'wrong', content } }
      const { upstream } = await readWritten(document({ root: { components: { schemas } }, operation: { responses } }))
      const [endpoint = assert.fail()] = Object.values(upstream?.endpoints ?? {})
      const refused = endpoint.classify?.({ status: 422, headers: {}, body: answer })
      assert.equal(refused?.message, says, `${name} ${status}`)
      // The text of a failure of the source is for its own operators.
      assert.equal(endpoint.classify?.({ status: 500, headers: {}, body: answer }), undefined)
    }
  })

  it('a schema that is made of parts has the null, the required members and the choices of its parts', async () => {
    const text = { type: 'string' }
    const schemas = {
      Base: { type: 'object', properties: { id: { type: 'string', readOnly: true } } },
      Kind: { type: 'integer', enum: [0, 1] },
      Cat: { type: 'object', required: ['kind'], properties: { kind: { const: 'cat' } } },
      Dog: { type: 'object', properties: { kind: { const: 'dog' } } },
    }
    const to = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const base = { type: 'object', properties: { id: text } }
    const cases: [schema: object, read: object][] = [
      [{ nullable: true, allOf: [to('Base')] }, { anyOf: [base, { type: 'null' }] }],
      [{ nullable: true, ...to('Kind') }, { anyOf: [schemas.Kind, { type: 'null' }] }],
      [{ ...text, nullable: true }, { type: ['string', 'null'] }],
      [{ allOf: [to('Base'), { required: ['id', 'none'] }] }, { ...base, required: ['id'] }],
      [
        { properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
        {
          anyOf: [['a'], ['b']].map((required) => ({
            type: 'object',
            properties: { a: text, b: text },
            required,
          })),
        },
      ],
      [
        { allOf: [to('Base'), { oneOf: [to('Cat'), to('Dog'), { type: 'null' }] }] },
        {
          anyOf: [schemas.Cat, schemas.Dog].map(({ properties, ...cat }) => ({
            ...cat,
            properties: { ...properties, id: text },
          })),
        },
      ],
    ]
    for (const [a, expected] of cases) {
      const schema = { type: 'object', properties: { a } }
      const { upstream } = await readWritten(document({ root: { components: { schemas } }, schema }))
      assert.deepEqual(upstream?.endpoints['/list-things']?.data.properties.a, expected, JSON.stringify(a))
    }
    const list = { anyOf: [{ type: 'array', items: text }, { type: 'null' }], title: 'Q' }
    const { entry } = await check(document({ operation: { parameters: [{ name: 'q', in: 'query', schema: list }] } }))
    assert.equal(entry?.endpoints[0]?.params.q?.type, 'array')
  })

  it('a request accepts the media type of its answer, and a success without a body is an answer if the document does not describe a body', async () => {
    const json = (type: string) => ({ content: { [type]: { schema: { type: 'object' } } } })
    const usual = [200, 201, 202, 204]
    const cases: [responses: object, accept: string | undefined, accepted: number[]][] = [
      [{ 200: json('application/json; charset=utf-8') }, undefined, [204]],
      [{ 200: json('*/*') }, undefined, [204]],
      [{ 200: json('application/hal+json;v=1'), 202: {} }, 'application/hal+json, application/json;q=0.9', [202, 204]],
      [{ 201: json('application/json'), 205: { description: 'x', content: {} } }, undefined, [204, 205]],
      [{ default: { description: 'successful operation' } }, undefined, usual],
      [{ 400: { description: 'Invalid' }, default: json('application/json') }, undefined, [204]],
      [{ 404: { description: 'Unknown' } }, undefined, usual],
      [{ 203: { description: 'x' } }, undefined, [...usual, 203].sort()],
    ]
    for (const [responses, accept, accepted] of cases) {
      const { upstream } = await readWritten(document({ operation: { responses } }))
      const [endpoint = assert.fail()] = Object.values(upstream?.endpoints ?? {})
      const [request] = [endpoint.request({}, { now: 0 })].flat()
      assert.equal(request?.headers?.accept, accept, JSON.stringify(responses))
      assert.deepEqual(endpoint.acceptStatuses?.toSorted(), accepted, JSON.stringify(responses))
    }
  })

  it('a list is written in the style of its parameter, and a separator in an item is not taken for a separator', async () => {
    const list = { type: 'array', items: { type: 'string' } }
    const query = (name: string, members: object = {}) => ({ name, in: 'query', schema: list, ...members })
    const parameters = [
      { name: 'ids', in: 'path', required: true, schema: list },
      { name: 'X-List', in: 'header', schema: list },
      query('many'),
      query('tiny', { schema: { type: 'number' } }),
      query('form', { explode: false }),
      query('pipes', { style: 'pipeDelimited', explode: false }),
      query('spaces', { style: 'spaceDelimited', explode: false }),
    ]
    const responses = { 200: { description: 'ok' } }
    const paths = {
      '/ok': { get: { responses } },
      '/of/{ids}.json': { get: { operationId: 'of', parameters, responses } },
    }
    const { upstream } = await readWritten(document({ root: { paths } }))
    const [, endpoint = assert.fail()] = Object.values(upstream?.endpoints ?? {})
    const value = ['a,b', 'c d']
    const given = Object.fromEntries(['ids', 'X-List', 'many', 'form', 'pipes', 'spaces'].map((name) => [name, value]))
    const [request = assert.fail()] = [endpoint.request({ ...given, tiny: 5e-7 }, { now: 0 })].flat()
    assert.equal(
      requestTarget('https://a.example', request, []).path,
      '/of/a%2Cb,c%20d.json?many=a%2Cb&many=c+d&tiny=0.0000005&form=a%2Cb,c+d&pipes=a%2Cb%7Cc+d&spaces=a%2Cb%20c+d',
    )
    assert.equal(request.headers?.['x-list'], 'a,b,c d')
  })

  it('the operations of an API have other ids in the document of the gateway than the operations of the service', async () => {
    const { upstream = assert.fail() } = await readWritten(
      document({ operation: { operationId: 'keys' } }),
      'list.json',
    )
    const catalog = new Catalog([['list', createApi('list', upstream, { settings: new Map(), isOperatorNamed: true })]])
    const keys: DocumentedRoute = {
      ...{ method: 'GET', url: '/v1/keys', summary: 'Keys', description: undefined, tags: ['Keys'], hidden: false },
      ...{ operationId: undefined, body: undefined, querystring: undefined, params: undefined, headers: undefined },
      ...{ responses: {}, errors: [], guard: 'session', outcome: undefined },
    }
    const { paths } = createDocument([keys], catalog, 'http://gateway.test')
    const ids = ['/v1/keys', '/v1/call/list/keys'].map((path) => Object(paths[path]?.get).operationId)
    assert.deepEqual(ids, ['listKeys', 'listKeysData'])
  })

  it('an API has a tag of its own in the document of the gateway, also if another API or a part of the service has its name', async () => {
    const { upstream = assert.fail() } = await readWritten(document(), 'list.json')
    const titled = Object.entries({ one: 'Things', two: 'things!', three: 'Keys', four: 'Other' })
    const apis = titled.map(([slug, displayName]): [string, ReturnType<typeof createApi>] => [
      slug,
      createApi(slug, { ...upstream, displayName }, { settings: new Map(), isOperatorNamed: true }),
    ])
    const { tags, paths } = createDocument([], new Catalog(apis), 'http://gateway.test')
    const expected = ['Things', 'things! (two)', 'Keys (three)', 'Other']
    const used = titled.map(([slug]) => Object(paths[`/v1/call/${slug}/list-things`]?.get).tags)
    assert.deepEqual(
      used,
      expected.map((name) => [name]),
    )
    const names = tags.map(({ name }) => name)
    for (const name of expected) assert.equal(names.filter((each) => each === name).length, 1, name)
  })

  it('a default that is null, or that has more digits than a number can hold, is not sent', async () => {
    const query = (name: string, schema: object) => ({ name, in: 'query', schema })
    const parameters = [
      query('a', { type: 'string', nullable: true, default: null }),
      query('b', { anyOf: [{ type: 'integer' }, { type: 'string' }, { type: 'null' }], default: null }),
      query('c', { type: 'integer', format: 'int64', default: 2 ** 63, maximum: 2 ** 63 }),
      { name: 'd', in: 'query', content: { 'application/json': { schema: { type: 'object' } } } },
      { ...query('e', { type: 'string' }), style: 'matrix' },
    ]
    const answer = await check(document({ operation: { parameters } }))
    const { params = {} } = answer.entry?.endpoints[0] ?? {}
    assert.deepEqual(Object.keys(params), ['a', 'b', 'c'])
    assert.deepEqual(
      Object.values(params).filter((given) => 'default' in given),
      [],
    )
    assert.equal(params.c?.description, 'Format: int64; a whole number')
    const said = words(answer).split('\n')
    assert.equal(said.length, 3)
    assert.match(said[0] ?? '', /2\/schema\/default: The value of default is left out: its number has more digits/)
    assert.match(said[1] ?? '', /3: The parameter d is left out: it has content in place of a schema\./)
    assert.match(said[2] ?? '', /4: The parameter e is left out: it has the style matrix, which the gateway does not/)
  })

  it('the variables of the server have their defaults, even if these are numbers', async () => {
    const variables = { stage: { default: 'prod' }, port: { default: 8443 }, version: { default: 2024 } }
    const servers = [{ url: 'https://{stage}.example.com:{port}/v{version}/', variables }]
    const { upstream } = await readWritten(document({ root: { servers } }))
    assert.equal(upstream?.baseUrl, 'https://prod.example.com:8443/v2024')
  })
})
