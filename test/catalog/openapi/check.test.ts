import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { checkDocument, checkPath } from '../../../src/operator/check-document.ts'
import { UsageError } from '../../../src/operator/command-line.ts'
import { check, document, readWritten, words } from '../../support/own-document.ts'

const ORDERS = fileURLToPath(new URL('../../own/orders.yaml', import.meta.url))

describe('a document of an own API', () => {
  it('a document with its overlay becomes an entry of the catalog, and each part that is left out is reported with its line and pointer', async () => {
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
      /orders\.yaml:97 \/paths\/~1orders~1\{id\}\/patch: The operation is left out: its method is PATCH and its effect is not stated/,
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

  it('a folder is checked whole: clashes of its documents, and overlays without a document, are errors', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'agw-folder-'))
    t.after(() => rm(folder, { recursive: true }))
    await assert.rejects(checkPath(folder, undefined), /The folder \S+ has no document: /)
    const write = (name: string) => writeFile(join(folder, name), JSON.stringify(document()))
    await write('stock.json')
    const alone = await checkPath(folder, undefined)
    assert.equal(alone.answer.ok, true, alone.text)
    assert.match(alone.text, /1 document can be served/)
    await write('stock.yaml')
    await writeFile(join(folder, 'stok.overlay.yaml'), 'overlay: 1.0.0\n')
    const { answer, text } = await checkPath(folder, undefined)
    assert.equal(answer.ok, false)
    assert.match(text, /Another file has the slug stock too/)
    assert.match(text, /stok\.overlay\.yaml: The folder has no document stok\.yaml/)
    assert.match(
      text,
      /No process starts with this folder, because 2 of 2 documents have errors and 1 overlay has no document/,
    )
    await assert.rejects(checkPath(folder, 'x.yaml'), UsageError)
  })

  it('a document without caps is an error that says how to write them', async () => {
    const { 'x-gateway': _, ...without } = document() as Record<string, unknown>
    assert.match(words(await check(without)), /no x-gateway, and the member caps of x-gateway is required/)
    const wrong = await check(document({ root: { 'x-gateway': { caps: { concurrency: 0, rates: [] }, probee: 1 } } }))
    assert.match(
      words(wrong),
      /things\.json:\d+ \/x-gateway\/probee: x-gateway has no member probee here; did you mean probe\?/,
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

  it('a probe is an operation that reads and has no required parameter, and a document without such an operation is an error', async () => {
    const operation = { parameters: [{ name: 'q', in: 'query', required: true, schema: { type: 'string' } }] }
    assert.match(words(await check(document({ operation }))), /has no operation that the gateway can use as the probe/)
  })

  it('the probe sends the defaults of its parameters, and a default that cannot be sent is left out', async () => {
    const parameter = (place: string, value: unknown) => ({
      ...{ name: place, in: place, required: true, schema: { type: 'string', default: value } },
    })
    const of = (...parameters: object[]) => document({ path: '/things/{path}', operation: { parameters } })
    const { upstream } = await readWritten(of(parameter('path', 'a b'), parameter('query', 'é')))
    assert.deepEqual([upstream?.probe.request.path, upstream?.probe.request.query], ['/things/a%20b', { query: ['é'] }])
    const refused = words(await check(of(parameter('path', '..'), parameter('header', '€'))))
    assert.match(refused, /The default is left out: it cannot be a path segment\./)
    assert.match(refused, /The default is left out: it has characters that a header field cannot contain\./)
  })

  it('an endpoint that has the name of another endpoint in the clients is an error', async () => {
    const other = words(await check(document({ operation: { operationId: 'host-user-profile' } }), 'code.json'))
    assert.match(
      other,
      /The endpoint host-user-profile has the same name as code-host-user\/profile in the generated clients/,
    )
  })

  it('a name with accents is an endpoint without them', async () => {
    for (const operationId of ['créerÉlément', 'cre\u0301er e\u0301le\u0301ment']) {
      const { entry } = await check(document({ operation: { operationId } }))
      assert.deepEqual(
        entry?.endpoints.map(({ path }) => path),
        ['/creer-element'],
      )
    }
  })

  // In quadratic time this would take minutes.
  it('a name of two hundred thousand letters is read in linear time', async () => {
    const operation = { operationId: `${'A'.repeat(200_000)}!` }
    assert.match(words(await check(document({ operation }))), /name/)
  })

  it('two operations of one name are an error, and are never numbered', async () => {
    const get = (Object(document()) as { paths: Record<string, object> }).paths['/things']
    const answer = await check(document({ root: { paths: { '/a': get, '/b': get } } }))
    assert.match(words(answer), /\/paths\/~1b\/get: Another operation has the name list-things already/)
  })

  it('a key is sent as its security scheme demands: unchanged, as a bearer token, or as user and password', async () => {
    const scheme = async (key: object) => {
      const root = { security: [{ key: [] }], components: { securitySchemes: { key } } }
      const { in: place, name, format } = Object((await readWritten(document({ root }))).upstream?.credential)
      return [place, name, format?.('ada:pass') ?? 'ada:pass']
    }
    assert.deepEqual(await scheme({ type: 'apiKey', in: 'header', name: 'X-Key' }), ['header', 'x-key', 'ada:pass'])
    assert.deepEqual(await scheme({ type: 'apiKey', in: 'query', name: 'api_key' }), ['query', 'api_key', 'ada:pass'])
    assert.deepEqual(await scheme({ type: 'http', scheme: 'Bearer' }), ['header', 'authorization', 'Bearer ada:pass'])
    const basic = `Basic ${Buffer.from('ada:pass').toString('base64')}`
    assert.deepEqual(await scheme({ type: 'http', scheme: 'basic' }), ['header', 'authorization', basic])
  })

  it('keys are checked with an operation that needs the key, even if the probe does not need it', async () => {
    const get = (Object(document()) as { paths: Record<string, { get: object }> }).paths['/things']?.get
    const keyed = (name: string) => ({ get: { ...get, operationId: name, security: [{ key: [] }] } })
    const paths = {
      '/state': { get: { ...get, operationId: 'state' } },
      '/first': keyed('first'),
      '/other': keyed('other'),
    }
    const components = { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } }
    const checked = async (settings: object) => {
      const gateway = { caps: { concurrency: 1, rates: [{ max: 1, seconds: 1 }] }, ...settings }
      const { upstream } = await readWritten(document({ root: { paths, components, 'x-gateway': gateway } }))
      return [upstream?.probe.request.path, upstream?.credential?.check?.request.path]
    }
    assert.deepEqual(await checked({}), ['/state', '/first'])
    assert.deepEqual(await checked({ probe: { operationId: 'other' } }), ['/other', '/other'])
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

  it('a required number causes its operation to be left out only if no number satisfies its bounds', async () => {
    const said = async (schema: object) => {
      const parameters = [{ name: 'n', in: 'query', required: true, schema }]
      return words(await check(document({ operation: { parameters } })))
    }
    for (const bounds of [
      { minimum: 0, exclusiveMinimum: true },
      { minimum: 0, exclusiveMinimum: true, maximum: 1, exclusiveMaximum: true },
      { exclusiveMinimum: 0, exclusiveMaximum: 1 },
      { exclusiveMaximum: -1 },
      { minimum: 0.3, maximum: 0.4, multipleOf: 0.1 },
      { minimum: 0, exclusiveMinimum: 0 },
    ])
      assert.doesNotMatch(
        await said({ type: 'number', ...bounds }),
        /can make no matching value/,
        JSON.stringify(bounds),
      )
    for (const bounds of [
      { minimum: 0, exclusiveMinimum: true },
      { maximum: -3, multipleOf: 2 },
      { minimum: 4, exclusiveMinimum: 4, multipleOf: 4 },
      { minimum: 0.5, maximum: 1.5 },
    ])
      assert.doesNotMatch(
        await said({ type: 'integer', ...bounds }),
        /can make no matching value/,
        JSON.stringify(bounds),
      )
    const parameters = [
      { name: 'n', in: 'query', schema: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9 } },
      { name: 'm', in: 'query', schema: { type: 'integer', exclusiveMaximum: 101, multipleOf: 5 } },
      { name: 'l', in: 'query', schema: { type: 'array', items: { type: 'boolean' }, minItems: 2, maxItems: 3 } },
    ]
    const { entry } = await check(document({ operation: { parameters } }))
    const shown = Object.values(entry?.endpoints[0]?.params ?? {}).map(({ description }) => description)
    assert.deepEqual(shown, [
      'a number of at most 9 and more than 0',
      'a whole number of less than 101 and a multiple of 5',
      'a list of 2–3 items, each item true or false',
    ])
    assert.match(
      await said({ type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 1 }),
      /can make no matching value/,
    )
  })

  it('an operation that is deprecated says so first', async () => {
    const { entry } = await check(document({ operation: { deprecated: true, summary: 'Lists things' } }))
    assert.equal(entry?.endpoints[0]?.description, 'Deprecated: Lists things.')
  })

  it('an optional parameter of another kind is left out, and a required one leaves its operation out', async () => {
    const parameter = { name: 'filter', in: 'query', schema: { type: 'object' } }
    const optional = await check(document({ operation: { parameters: [parameter] } }))
    assert.equal(optional.ok, true)
    assert.match(words(optional), /The parameter filter is left out/)
    const required = await check(document({ operation: { parameters: [{ ...parameter, required: true }] } }))
    assert.match(
      words(required),
      /its required parameter filter has a schema that allows more than a plain value or a list/,
    )
    for (const name of ['Host', 'Cookie', 'X-Forwarded-For', 'Transfer-Encoding', 'X-Gateway-Mode']) {
      const header = await check(
        document({ operation: { parameters: [{ name, in: 'header', required: true, schema: { type: 'string' } }] } }),
      )
      assert.match(words(header), /is a header that controls the connection, authentication or forwarding/, name)
    }
  })
})
