import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findingLine } from '../../../src/catalog/openapi/report.ts'
import { checkDocument } from '../../../src/operator/check-document.ts'

const ORDERS = fileURLToPath(new URL('../../own/orders.yaml', import.meta.url))

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-'))
})
after(async () => {
  await rm(folder, { recursive: true })
})

/** A document of one operation, with what a test is about. */
function document(parts: { root?: object; operation?: object; path?: string; schema?: object } = {}): object {
  const {
    root = {},
    operation = {},
    path = '/things',
    schema = { type: 'object', properties: { a: { type: 'string' } } },
  } = parts
  const content = { 'application/json': { schema } }
  return {
    openapi: '3.0.3',
    info: { title: 'Things', version: '1' },
    servers: [{ url: 'https://things.example.com' }],
    'x-gateway': { caps: { concurrency: 2, rates: [] } },
    paths: {
      [path]: { get: { operationId: 'listThings', responses: { 200: { description: 'ok', content } }, ...operation } },
    },
    ...root,
  }
}

async function check(
  given: object | string,
  name = 'things.json',
  overlay?: object,
): Promise<Awaited<ReturnType<typeof checkDocument>>['answer']> {
  const file = join(folder, name)
  await writeFile(file, typeof given === 'string' ? given : JSON.stringify(given, null, 1))
  const overlayFile = join(folder, `${name}.overlay`)
  if (overlay) await writeFile(overlayFile, JSON.stringify(overlay))
  const { answer } = await checkDocument(file, overlay ? overlayFile : undefined)
  return answer
}

const words = ({
  errors,
  leftOut,
}: {
  errors: Parameters<typeof findingLine>[0][]
  leftOut: Parameters<typeof findingLine>[0][]
}) => [...errors, ...leftOut].map(findingLine).join('\n')

describe('a document of an own API', () => {
  it('a document with its overlay becomes an entry of the catalog, and what is left out is said with its line and pointer', async () => {
    const { answer, text } = await checkDocument(ORDERS, undefined)
    assert.equal(answer.ok, true, text)
    const paths = answer.entry?.endpoints.map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual(paths, [
      'GET /get-status',
      'GET /list-orders',
      'POST /create-order',
      'GET /get-order',
      'POST /cancel-order',
    ])
    assert.deepEqual(answer.effects['/create-order'], 'once')
    assert.match(
      text,
      /orders\.yaml:97 \/paths\/~1orders~1\{id\}\/patch: The operation is left out: it is a PATCH whose effect is not stated/,
    )
    const list = answer.entry?.endpoints.find(({ path }) => path === '/list-orders')
    assert.deepEqual(list?.params.page, {
      type: 'integer',
      required: false,
      description: 'a whole number of at least 1',
      default: 1,
    })
    assert.equal(list?.params.state?.type, 'array')
  })

  it('a document without caps is an error that says how to write them', async () => {
    const { 'x-gateway': _, ...without } = document() as Record<string, unknown>
    assert.match(words(await check(without)), /no x-gateway, whose caps are required/)
    const wrong = await check(document({ root: { 'x-gateway': { caps: { concurrency: 0, rates: [] }, probee: 1 } } }))
    assert.match(
      words(wrong),
      /things\.json:\d+ \/x-gateway\/probee: x-gateway has no member probee here; it takes caps, baseUrl, probe/,
    )
    assert.match(words(wrong), /\/x-gateway\/caps\/concurrency: /)
    assert.equal(wrong.entry, null)
  })

  it('an overlay whose target matches nothing is an error', async () => {
    const overlay = { overlay: '1.0.0', actions: [{ target: "$.paths['/thing']", update: {} }] }
    assert.match(
      words(await check(document(), 'things.json', overlay)),
      /The target \$\.paths\['\/thing'\] matches nothing/,
    )
  })

  it('a probe is an operation that reads without parameters, and a document that has none must name one', async () => {
    const operation = { parameters: [{ name: 'q', in: 'query', required: true, schema: { type: 'string' } }] }
    assert.match(words(await check(document({ operation }))), /none can be the probe/)
  })

  it('two operations of one name are an error, and are never numbered', async () => {
    const get = (Object(document()) as { paths: Record<string, object> }).paths['/things']
    const answer = await check(document({ root: { paths: { '/a': get, '/b': get } } }))
    assert.match(words(answer), /\/paths\/~1b\/get: A second operation has the name list-things/)
  })

  it('security that the gateway cannot meet leaves an operation out, and says what it needs', async () => {
    const securitySchemes = { sign: { type: 'oauth2', flows: {} }, key: { type: 'apiKey', in: 'cookie', name: 's' } }
    const root = { components: { securitySchemes } }
    assert.match(
      words(await check(document({ root, operation: { security: [{ sign: [] }] } }))),
      /sign needs OAuth 2\.0/,
    )
    assert.match(words(await check(document({ root, operation: { security: [{ key: [] }] } }))), /key needs a cookie/)
  })

  it('an optional parameter of another kind is left out, and a required one leaves its operation out', async () => {
    const parameter = { name: 'filter', in: 'query', schema: { type: 'object' } }
    const optional = await check(document({ operation: { parameters: [parameter] } }))
    assert.equal(optional.ok, true)
    assert.match(words(optional), /The parameter filter is left out/)
    const required = await check(document({ operation: { parameters: [{ ...parameter, required: true }] } }))
    assert.match(words(required), /its required parameter filter is neither a plain value nor a list/)
    for (const name of ['Host', 'Cookie', 'X-Forwarded-For', 'Transfer-Encoding', 'X-Gateway-Mode']) {
      const header = await check(
        document({ operation: { parameters: [{ name, in: 'header', required: true, schema: { type: 'string' } }] } }),
      )
      assert.match(words(header), /belongs to the connection, to authentication or to forwarding/, name)
    }
  })
})

describe('a hostile document', () => {
  let requests = 0
  const trap = createServer((_request, response) => {
    requests += 1
    response.end('{}')
  })
  let address = ''
  before(async () => {
    await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(trap.address() as AddressInfo).port}`
  })
  after(() => trap.close())

  it('a reference to a file or a host is an error, and nothing is fetched', async () => {
    for (const $ref of [
      `${address}/schema.json`,
      '../../etc/passwd',
      'file:///etc/passwd',
      'other.yaml#/a',
      '//host/x',
    ]) {
      const answer = await check(document({ schema: { $ref } }))
      assert.match(words(answer), /leads to another file or host, and nothing is fetched/, $ref)
      assert.equal(answer.entry, null)
    }
    assert.match(words(await check(document({ schema: { $ref: '#/components/schemas/None' } }))), /leads to nothing/)
    assert.equal(requests, 0)
  })

  it('schemas that lead back to themselves end in anything, and references that do are an error', async () => {
    const schemas = {
      Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' }, name: { type: 'string' } } },
      Loop: { $ref: '#/components/schemas/Loop' },
    }
    const tree = await check(
      document({ root: { components: { schemas } }, schema: { $ref: '#/components/schemas/Node' } }),
    )
    assert.equal(tree.ok, true, words(tree))
    const loop = await check(
      document({ root: { components: { schemas } }, schema: { $ref: '#/components/schemas/Loop' } }),
    )
    assert.match(words(loop), /leads back to itself/)
  })

  it('schemas that multiply are refused at their bound', async () => {
    const schemas: Record<string, object> = { S0: { type: 'string' } }
    for (let level = 1; level <= 9; level += 1) {
      const properties = Object.fromEntries(
        Array.from({ length: 9 }, (_, index) => [`p${index}`, { $ref: `#/components/schemas/S${level - 1}` }]),
      )
      schemas[`S${level}`] = { type: 'object', properties }
    }
    const answer = await check(
      document({ root: { components: { schemas } }, schema: { $ref: '#/components/schemas/S9' } }),
    )
    assert.match(words(answer), /are more than 50000 once their references are written out/)
  })

  it('texts that a parser would take minutes for are refused in seconds, each with its bound', async () => {
    const bytes = 5 * 1024 * 1024
    const texts: [string, RegExp][] = [
      ['['.repeat(bytes), /deeper than 64/],
      ['{"a":'.repeat(bytes / 5), /deeper than 64/],
      ['- '.repeat(bytes / 2), /deeper than 64/],
      ['a: '.repeat(bytes / 4), /deeper than 64/],
      ['&a '.repeat(bytes / 4), /anchors and tags/],
      [`[${','.repeat(bytes - 9)}]`, /separator/],
      ['"'.repeat(bytes), /separator/],
      ['x'.repeat(bytes + 1), /MB/],
      ['a: 1\na: 2', /stands twice/],
      ['a: !!js/function x', /Tags of YAML/],
      ['a: &a [*a]', /names no value that stands before it/],
      [
        [
          'a: &a [x,x,x,x,x,x,x,x,x]',
          ...[...'bcdefghi'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`)}]`),
        ].join('\n'),
        /more than 250000 values/,
      ],
    ]
    for (const [text, expected] of texts) {
      const answer = await check(text, 'things.yaml')
      assert.match(words(answer), expected, text.slice(0, 20))
      assert.equal(answer.ok, false)
    }
  })

  it('names that reach a prototype are refused wherever they stand', async () => {
    for (const name of ['__proto__', 'constructor', 'prototype']) {
      assert.match(words(await check(`{"openapi": "3.0.0", "${name}": {"x": 1}}`)), /which no document may use/)
      const parameters = [{ name, in: 'query', required: true, schema: { type: 'string' } }]
      assert.match(words(await check(document({ operation: { parameters } }))), /has a name that no parameter may have/)
    }
    assert.equal(Reflect.get({}, 'x'), undefined)
  })

  it('a path that leaves its base address, or has a query, is an error', async () => {
    for (const path of [
      '/../admin',
      '/a/../b',
      '/a/./b',
      '/%2e%2e/b',
      '/a?b=1',
      '/a#b',
      'a',
      '//evil.example.com/a',
      '/a\\..\\b',
      '/a b',
      '/{a',
      '/a\r\nb',
    ]) {
      const answer = await check(document({ path }))
      assert.equal(answer.ok, false, path)
      assert.match(words(answer), /path/i, path)
    }
  })

  it('a private address of the document is blocked and said, and an operator may allow it', async () => {
    for (const url of [
      'http://127.0.0.1:9',
      'http://10.1.2.3/x',
      'http://localhost/x',
      'http://[::1]/',
      'http://169.254.169.254/latest',
    ]) {
      assert.match(
        words(await check(document({ root: { servers: [{ url }] } }))),
        /The address is private, and requests to it are blocked/,
        url,
      )
    }
    for (const url of [
      'ftp://a.example.com',
      'https://u:p@a.example.com',
      'https://a.example.com/?x=1',
      '/v1',
      'javascript:alert(1)',
    ]) {
      assert.equal((await check(document({ root: { servers: [{ url }] } }))).ok, false, url)
    }
  })

  it('an exploding pattern is shown and never run, and texts are one bounded line', async () => {
    const parameters = [
      {
        name: 'q',
        in: 'query',
        description: `Ignore\n\u202eall ${'x '.repeat(5_000)}`,
        schema: { type: 'string', pattern: '^(a+)+$' },
      },
    ]
    const answer = await check(document({ operation: { parameters } }))
    const { description = '' } = answer.entry?.endpoints[0]?.params.q ?? {}
    assert.match(description, /Pattern: \^\(a\+\)\+\$/)
    assert.ok(description.length < 500)
    assert.doesNotMatch(description, /[\n\u202e]/)
  })

  it('slugs of built-in APIs, of keys in Redis and of other things are refused', async () => {
    for (const name of [
      'weather.json',
      'stats.json',
      'processes.json',
      'dictionary-fallback.json',
      'reply-x.json',
      'Bad.json',
      'a_b.json',
      `${'a'.repeat(41)}.json`,
    ]) {
      const answer = await check(document(), name)
      assert.equal(answer.ok, false, name)
    }
  })

  it('more than 200 operations are refused, unless some are skipped', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 201 }, (_, index) => [`/p${index}`, { get: { responses: {} } }]),
    )
    assert.match(words(await check(document({ root: { paths } }))), /has 201 operations to offer, and 200 is the most/)
  })

  it('what is neither JSON nor OpenAPI 3 is refused in a sentence', async () => {
    for (const [text, expected] of [
      ['', /empty/],
      ['{', /neither JSON nor YAML/],
      ['[]', /must be an object/],
      ['swagger: "2.0"', /Swagger 2\.0/],
      ['openapi: 4.0.0', /openapi: 3\.0\.x or 3\.1\.x/],
    ] as const) {
      assert.match(words(await check(text, 'things.yaml')), expected)
    }
  })
})
