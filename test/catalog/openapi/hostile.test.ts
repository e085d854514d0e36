import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { checkDocument } from '../../../src/operator/check-document.ts'
import { check, document, readWritten, words } from '../../support/own-document.ts'

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

  it('a reference to a file or a host is an error, and the gateway fetches nothing', async () => {
    for (const $ref of [
      `${address}/schema.json`,
      '../../etc/passwd',
      'file:///etc/passwd',
      'other.yaml#/a',
      '//host/x',
    ]) {
      const answer = await check(document({ schema: { $ref } }))
      assert.match(words(answer), /points to another file or host, and the gateway reads only this file/, $ref)
      assert.equal(answer.entry, null)
    }
    assert.match(
      words(await check(document({ schema: { $ref: '#/components/schemas/None' } }))),
      /points to a place that this document does not have/,
    )
    assert.equal(requests, 0)
  })

  it('a schema that contains itself allows any value at that place, and a reference that points to itself is an error', async () => {
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
    assert.match(words(loop), /points to itself/)
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
    assert.match(words(answer), /are more than 50000 once their references are expanded/)
  })

  it('texts that would take a parser minutes are refused in seconds, and the refusal names the bound', async () => {
    const bytes = 5 * 1024 * 1024
    const texts: [string, RegExp][] = [
      ['['.repeat(bytes), /deeper than 64/],
      ['{"a":'.repeat(bytes / 5), /deeper than 64/],
      ['- '.repeat(bytes / 2), /deeper than 64/],
      ['a: '.repeat(bytes / 4), /deeper than 64/],
      ['&a '.repeat(bytes / 4), /anchors and tags/],
      [`[${','.repeat(bytes - 9)}]`, /a comma, colon or line break is missing/],
      ['"'.repeat(bytes), /a comma, colon or line break is missing/],
      ['x'.repeat(bytes + 1), /MB/],
      ['a: 1\na: 2', /appears twice/],
      ['a: !!js/function x', /does not accept YAML tags/],
      [
        `a: &a ${'x'.repeat(1_000_000)}\n${Array.from({ length: 50 }, (_, index) => `b${index}: *a`).join('\n')}`,
        /more than 10 MB of text/,
      ],
      ['a: &a [*a]', /must name an anchor that stands before it/],
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
      assert.match(words(await check(`{"openapi": "3.0.0", "${name}": {"x": 1}}`)), /which a document must not use/)
      const parameters = [{ name, in: 'query', required: true, schema: { type: 'string' } }]
      assert.match(
        words(await check(document({ operation: { parameters } }))),
        /has no name, or a name that the gateway does not accept/,
      )
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

  it('a private address in a document is blocked and reported, and an operator can allow it', async () => {
    for (const url of [
      'http://127.0.0.1:9',
      'http://10.1.2.3/x',
      'http://localhost/x',
      'http://[::1]/',
      'http://169.254.169.254/latest',
      'http://[4000::1]/',
      'http://[2002:7f00:1::1]/',
    ]) {
      assert.match(
        words(await check(document({ root: { servers: [{ url }] } }))),
        /The address is private, so the gateway blocks requests to it/,
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

  it('an address that no connection can reach is an error, in the document and in the settings', async () => {
    const caps = { concurrency: 2, rates: [] }
    for (const address of [
      'https://h.example:0',
      'https://a..example.com',
      'https://*.example.com',
      `https://${'a'.repeat(64)}.example.com`,
      `https://${'a.'.repeat(127)}example`,
      'https://a!b.example.com',
      'http://224.0.0.1',
      'http://255.255.255.255',
      'http://[ff02::1]',
    ]) {
      for (const root of [{ servers: [{ url: address }] }, { 'x-gateway': { caps, baseUrl: address } }]) {
        const answer = await check(document({ root }))
        assert.equal(answer.ok, false, address)
        assert.match(words(answer), /The gateway cannot use the address, because/, address)
      }
    }
    for (const address of ['http://my_service:8080/v1', 'https://a-.b.example./'])
      assert.equal((await check(document({ root: { 'x-gateway': { caps, baseUrl: address } } }))).ok, true, address)
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

  it('a folder, a pipe or a missing file in place of a document is reported at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pipe-'))
    execFileSync('mkfifo', [join(folder, 'pipe.yaml')])
    const said = async (name: string) => words((await checkDocument(join(folder, name), undefined)).answer)
    assert.match(await said('pipe.yaml'), /pipe\.yaml: This is a folder, a device or a pipe/)
    assert.match(await said('none.yaml'), /none\.yaml: The file does not exist/)
    await mkdir(join(folder, 'a.yaml'))
    assert.match(await said('a.yaml'), /a\.yaml: This is a folder/)
    await rm(folder, { recursive: true })
  })

  it('slugs that built-in APIs, keys in Redis or other parts use are refused', async () => {
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
    assert.match(
      words(await check(document({ root: { paths } }))),
      /has 201 operations, and an API may have at most 200 endpoints/,
    )
  })

  it('a file that is not JSON, YAML or OpenAPI 3 is refused with one sentence', async () => {
    for (const [text, expected] of [
      ['', /empty/],
      ['{', /neither JSON nor YAML/],
      ['[]', /must be an object/],
      ['swagger: "2.0"', /Swagger 2\.0/],
      ['openapi: 4.0.0', /must be a version 3\.0\.x or 3\.1\.x/],
    ] as const) {
      assert.match(words(await check(text, 'things.yaml')), expected)
    }
  })

  /** What is said of each document, each under a name. */
  async function expectWords(cases: [label: string, given: object | string, expected: RegExp][], isServed: boolean) {
    for (const [label, given, expected] of cases) {
      const answer = await check(given, 'things.yaml')
      assert.match(words(answer), expected, label)
      assert.equal(answer.ok, isServed, `${label}: ${words(answer)}`)
    }
  }

  const text = [
    "openapi: 3.1.0\ninfo: { title: T, version: '1' }\nservers: [{ url: https://t.example.com }]",
    "x-gateway: { caps: { concurrency: 2, rates: [] } }\npaths: { /ok: { get: { responses: { '200': { description: ok } } } } }\n",
  ].join('\n')

  it('a text that YAML reads differently from what its writer means is refused with its line', async () => {
    await expectWords(
      [
        ['a merge key', `${text}a: &a { x: 1 }\nb: { <<: *a }\n`, /things\.yaml:7: YAML 1\.2 has no merge key/],
        ['a second document', `${text}---\na: 1\n`, /several YAML documents/],
        ['another encoding', Buffer.from(`\ufeff${text}`, 'utf16le'), /is not UTF-8/],
        ['Latin-1', Buffer.from(text.replace('title: T', 'title: M\u00fcnze'), 'latin1'), /is not UTF-8/],
        ['infinity', text.replace('concurrency: 2', 'concurrency: .inf'), /things\.yaml:4: A number is infinite/],
        ['a number beyond a double', text.replace('concurrency: 2', 'concurrency: 1e999'), /infinite/],
        ['no number', text.replace('concurrency: 2', 'concurrency: .nan'), /infinite/],
        ['two spellings of a name', `${text}1: a\n"1": b\n`, /The member 1 appears twice/],
        ['a list as a name', `${text}? [a]\n: b\n`, /name of a member must be a string/],
        ['an anchor at a name', `${text}&a b: c\n`, /name of a member must be a string/],
        ['a tab', `${text}a:\n\tb: 1\n`, /Tabs are not allowed/],
        [
          'numbers as text',
          text.replace('concurrency: 2', "concurrency: '2'"),
          /\/x-gateway\/caps\/concurrency: The value must be a whole number\./,
        ],
        [
          'a misspelled member',
          text.replace('rates: []', 'rates: [], ratse: []'),
          /\/x-gateway\/caps\/ratse: x-gateway has no member ratse here; did you mean rates\?/,
        ],
      ],
      false,
    )
  })

  it('a value where another type belongs is an error with its pointer, and is never ignored', async () => {
    const operation = (members: object) => document({ operation: members })
    await expectWords(
      [
        [
          'webhooks alone',
          { ...document(), paths: undefined, webhooks: {} },
          /\/paths: The document must have a member paths that is an object/,
        ],
        ['paths as a list', document({ root: { paths: [] } }), /must have a member paths that is an object/],
        [
          'a path as null',
          document({ root: { paths: { '/a': null } } }),
          /\/paths\/~1a: The value of a path must be an object/,
        ],
        [
          'an operation as a text',
          document({ root: { paths: { '/a': { get: 'x' } } } }),
          /\/paths\/~1a\/get: An operation must be an object/,
        ],
        [
          'parameters as an object',
          operation({ parameters: { a: 1 } }),
          /\/get\/parameters: The value of parameters must be a list of objects/,
        ],
        [
          'a parameter as null',
          operation({ parameters: [null] }),
          /\/get\/parameters\/0: Each item of parameters must be an object/,
        ],
        [
          'responses as a list',
          operation({ responses: [] }),
          /\/get\/responses: The responses of an operation must be an object/,
        ],
        [
          'security as an object',
          document({ root: { security: { key: [] } } }),
          /\/security: The value of security must be a list/,
        ],
        ['a schema as a text', document({ schema: 'string' }), /\/schema: A schema must be an object/],
        [
          'a property as null',
          document({ schema: { properties: { a: null } } }),
          /\/properties\/a: A schema must be an object/,
        ],
        [
          'properties as a list',
          document({ schema: { properties: [1] } }),
          /\/properties: The properties of a schema must be an object/,
        ],
        ['items as a list', document({ schema: { items: [{}] } }), /\/items: A schema must be an object/],
        [
          'allOf as a text',
          document({ schema: { allOf: 'x' } }),
          /\/allOf: The value of anyOf, oneOf or allOf must be a list/,
        ],
        ['a reference as a number', document({ schema: { $ref: 5 } }), /\/schema\/\$ref: A reference must be a string/],
        ['an anchor', document({ schema: { $ref: '#here' } }), /The reference is an anchor/],
        [
          'a script as terms',
          document({
            root: { 'x-gateway': { caps: { concurrency: 1, rates: [] }, terms: { url: 'javascript:alert(1)' } } },
          }),
          /\/x-gateway\/terms\/url: The value must be an http: or https: address/,
        ],
        [
          'a port without a default',
          document({ root: { servers: [{ url: 'https://a.example.com:{port}' }] } }),
          /variable without a default/,
        ],
        [
          'a variable without a default',
          document({ root: { servers: [{ url: 'https://a.example.com/{v}', variables: { v: {} } }] } }),
          /variable without a default/,
        ],
      ],
      false,
    )
  })

  it('a path in which an encoded character may lead elsewhere is an error', async () => {
    const paths = [
      '/a%2f..%2fb',
      '/%252e%252e/x',
      '/a%5c..%5cb',
      '/..;/b',
      '/..%00/b',
      '/%',
      '/%zz',
      '/%0d%0a',
      '/a%3Fb',
      '/a%23b',
      '/a'.repeat(600),
    ]
    await expectWords(
      paths.map((path) => [path.slice(0, 20), document({ path }), /path/i]),
      false,
    )
  })

  it('what the gateway cannot call or check is left out with its pointer, and the rest is served', async () => {
    const parameter = (members: object) => {
      const okay = { get: { operationId: 'okay', responses: { 200: { description: 'ok' } } } }
      const other = {
        operationId: 'other',
        responses: {},
        parameters: [{ name: 'q', in: 'query', required: true, ...members }],
      }
      return document({ root: { paths: { '/ok': okay, '/other': { get: other } } } })
    }
    const number = (schema: object) => parameter({ schema: { type: 'number', ...schema } })
    const noValue =
      /required parameter q has a schema for which the gateway can make no matching value; give an example/
    const okay = { get: { operationId: 'okay', responses: { 200: { description: 'ok' } } } }
    const beside = (members: object) => document({ root: { paths: { '/ok': okay, '/other': members } } })
    const answers = (type: string) => ({ responses: { 200: { description: 'x', content: { [type]: {} } } } })
    const takes = (type: string) => ({
      post: {
        operationId: 'p',
        responses: {},
        'x-gateway': { effect: 'once' },
        requestBody: { required: true, content: { [type]: { schema: { type: 'object' } } } },
      },
    })
    await expectWords(
      [
        ['bounds that nothing is between', number({ minimum: 5, maximum: 1 }), noValue],
        ['multiples of nothing', number({ multipleOf: 0 }), noValue],
        ['a length of a gigabyte', parameter({ schema: { type: 'string', minLength: 1e9 } }), noValue],
        ['an empty enumeration', parameter({ schema: { type: 'string', enum: [] } }), noValue],
        ['an enumeration of objects', parameter({ schema: { type: 'string', enum: [{ a: 1 }] } }), noValue],
        ['a long list', parameter({ schema: { type: 'array', items: { type: 'string' }, minItems: 51 } }), noValue],
        [
          'a default beyond its bound',
          number({ maximum: 5, default: 9 }),
          /\/schema: The default is left out: it does not match/,
        ],
        [
          'an example beyond its bound',
          parameter({ schema: { type: 'integer', maximum: 5 }, example: 9 }),
          /The example of the parameter is left out/,
        ],
        [
          'an enumeration of 20,000',
          parameter({ schema: { enum: Array.from({ length: 20_000 }, String) } }),
          /\/enum: The value of enum is too long/,
        ],
        [
          'a default of 200 KB',
          parameter({ schema: { type: 'string', default: 'x'.repeat(200_000) } }),
          /\/default: The value of default is too long/,
        ],
        [
          'an unknown type',
          parameter({ schema: { type: 'file' } }),
          /\/type: The type file is not a type of JSON Schema/,
        ],
        [
          'keywords that do not validate',
          parameter({ schema: { type: 'string', not: { enum: ['a'] }, pattern: '(a+)+' } }),
          /\/pattern: The gateway ignores the schema keyword pattern/,
        ],
        [
          'a server of its own',
          beside({ servers: [{ url: 'https://b.example.com' }], ...okay, get: { ...okay.get, operationId: 'b' } }),
          /\/servers: The operation is left out: its server differs from the server of the document/,
        ],
        [
          'HEAD',
          beside({ head: { responses: {} } }),
          /\/head: The operation is left out: the gateway does not send the method HEAD/,
        ],
        [
          'an answer that is no JSON',
          beside({ get: { operationId: 'csv', ...answers('text/csv') } }),
          /the media type of its answer is text\/csv, and the gateway passes on only JSON/,
        ],
        [
          'a body of a form',
          beside(takes('application/x-www-form-urlencoded')),
          /its media type is application\/x-www-form-urlencoded, and the gateway sends only JSON/,
        ],
        ['a body in parts', beside(takes('multipart/form-data')), /its media type is multipart\/form-data/],
        [
          'two keys at once',
          beside({ get: { ...okay.get, operationId: 'b', security: [{ a: [], b: [] }] } }),
          /needs a and b together/,
        ],
        [
          'an id of calls in the header Host',
          beside({
            post: { operationId: 'p', responses: {}, 'x-gateway': { effect: 'once', idempotencyHeader: 'Host' } },
          }),
          /\/x-gateway\/idempotencyHeader: The operation is left out/,
        ],
        [
          'a write that is to be stored',
          beside({ post: { operationId: 'p', responses: {}, 'x-gateway': { effect: 'once', cacheSeconds: 5 } } }),
          /the gateway does not store answers of an operation that changes something/,
        ],
        [
          'an example of 3 MB',
          document({ media: { example: { a: 'x'.repeat(3_000_000) } } }),
          /The example of the answer is too long/,
        ],
        [
          'an example that does not fit',
          document({ media: { example: { a: 5 } } }),
          /The example of the answer does not match its schema/,
        ],
        [
          'a name of a local network',
          document({ root: { servers: [{ url: 'http://intranet/' }] } }),
          /The address is private/,
        ],
        [
          'a line break in a name',
          parameter({ name: 'a\r\nb', required: false, schema: {} }),
          /The parameter a\\u000d\\u000ab is left out/,
        ],
      ],
      true,
    )
  })

  it('headers that identify the caller, or change what is requested, cannot be parameters', async () => {
    const names = [
      'X-Client-IP',
      'CF-Connecting-IP',
      'X-Original-URL',
      'X-HTTP-Method-Override',
      'Cookie2',
      'Set-Cookie',
      'If-None-Match',
      'Range',
      'HTTP2-Settings',
      'traceparent',
      'Access-Control-Request-Method',
    ]
    for (const name of names) {
      const parameters = [{ name, in: 'header', schema: { type: 'string' } }]
      assert.match(words(await check(document({ operation: { parameters } }))), /is left out: it is a header/, name)
    }
    const kept = [{ name: 'Accept-Language', in: 'header', schema: { type: 'string' } }]
    assert.equal(words(await check(document({ operation: { parameters: kept } }))), '')
    for (const name of ['Host', 'Transfer-Encoding', 'a\r\nb']) {
      const root = {
        security: [{ key: [] }],
        components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name } } },
      }
      assert.match(words(await check(document({ root }))), /key sends its key in a header that the gateway may not set/)
    }
  })

  it('a parameter cannot have the name of a member of Object.prototype, and names that differ only in letter case are two parameters', async () => {
    const query = (name: string) => ({ name, in: 'query', schema: { type: 'string' } })
    for (const name of ['toString', 'valueOf', 'hasOwnProperty', '__defineGetter__']) {
      const answer = await check(document({ operation: { parameters: [query(name)] } }))
      assert.match(words(answer), /has no name, or a name that the gateway does not accept/, name)
    }
    const two = await check(document({ operation: { parameters: [query('A'), query('a')] } }))
    assert.deepEqual(Object.keys(two.entry?.endpoints[0]?.params ?? {}), ['A', 'a'])
  })

  it('choices that multiply the schemas beside them are refused at a bound, before they are expanded', async () => {
    const schemas: Record<string, object> = { S0: { type: 'string' } }
    for (let level = 1; level <= 30; level += 1) {
      const anyOf = ['a', 'b', 'c', 'd'].map((description) => ({ description }))
      schemas[`S${level}`] = { properties: { a: { $ref: `#/components/schemas/S${level - 1}` } }, anyOf }
    }
    const root = { components: { schemas } }
    const many = await check(document({ root, schema: { $ref: '#/components/schemas/S30' } }))
    assert.match(words(many), /have more than 250000 values once their references are expanded/)
    const parts = Array.from({ length: 3_000 }, (_, index) => ({ properties: { [`p${index}`]: { type: 'string' } } }))
    assert.equal((await check(document({ schema: { allOf: parts } }))).ok, true)
    const same = parts.map((_, index) => ({ type: 'object', properties: { p: { enum: [`v${index}`] } } }))
    assert.equal((await check(JSON.stringify(document({ schema: { anyOf: same } })))).ok, true)
    const chain = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`C${index}`, { $ref: `#/components/schemas/C${index + 1}` }]),
    )
    const long = document({ root: { components: { schemas: chain } }, schema: { $ref: '#/components/schemas/C0' } })
    assert.match(words(await check(long)), /A chain of references has more than 20 links/)
  })

  it('an overlay that writes a list into each of many members is refused at a bound', async () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`m${index}`, { x: [1] }]))
    const update = { x: Array.from({ length: 2_000 }, () => 1) }
    const overlay = { overlay: '1.0.0', actions: [{ target: '$.x-many.*', update }] }
    const answer = await check(JSON.stringify({ ...document(), 'x-many': many }), 'things.json', overlay)
    assert.match(words(answer), /things\.json\.overlay:1: The overlay writes more than 1000000 values/)
  })

  it('keywords beside a reference apply too, and a description beside it replaces the description of its target', async () => {
    const schemas = {
      Thing: {
        type: 'object',
        description: 'Any thing',
        required: ['a'],
        properties: { a: { type: 'string', description: 'A' } },
      },
    }
    const body = {
      $ref: '#/components/schemas/Thing',
      description: 'This thing',
      required: ['b'],
      properties: { b: { type: 'integer' } },
    }
    const requestBody = { required: true, content: { 'application/json': { schema: body } } }
    const post = { operationId: 'p', responses: {}, 'x-gateway': { effect: 'once' }, requestBody }
    const root = { components: { schemas }, paths: { '/ok': { get: { responses: {} } }, '/p': { post } } }
    const { entry } = await check(document({ root }))
    const given = entry?.endpoints.find(({ path }) => path === '/p')?.params.body
    assert.match(String(given?.description), /^This thing/)
    const { upstream } = await readWritten(document({ root }))
    const { body: schema } = Object(upstream?.endpoints['/p']?.parameters).properties
    assert.deepEqual(
      [schema.required, Object.keys(schema.properties)],
      [
        ['b', 'a'],
        ['b', 'a'],
      ],
    )
  })
})
