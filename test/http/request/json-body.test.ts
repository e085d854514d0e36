import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import fc from 'fast-check'
import { GatewayError } from '../../../src/errors.ts'
import { parseJsonBody, readJsonBody, spelledNumber } from '../../../src/http/request/json-body.ts'

const parse = (text: string): unknown => parseJsonBody(Buffer.from(text))

function refused(bytes: string | Buffer, code: string): void {
  assert.throws(
    () => parseJsonBody(typeof bytes === 'string' ? Buffer.from(bytes) : bytes),
    (error) => error instanceof GatewayError && error.code === code && error.status === 400,
    `${code}: ${bytes.toString().slice(0, 60)}`,
  )
}

const nested = (depth: number, open = '[', close = ']'): string => open.repeat(depth) + close.repeat(depth)

/** JSON values as text in many spellings: white space, escapes, numbers as they come. */
const spelled = fc
  .tuple(fc.jsonValue({ maxDepth: 8, noUnicodeString: false }), fc.constantFrom(0, 1, 4, '\t', '\r\n '), fc.boolean())
  .map(([value, space, escaped]) => {
    const text = JSON.stringify(value, null, space)
    return escaped
      ? text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : text
  })

describe('a JSON body', () => {
  it('a JSON body is parsed once, however many strings without an escape it has', () => {
    const parses = mock.method(JSON, 'parse')
    try {
      parse(`[${'"",'.repeat(5_000)}{"name":"text"}]`)
      assert.equal(parses.mock.callCount(), 1)
      parse('["\\u0061",""]')
      assert.equal(parses.mock.callCount(), 3)
    } finally {
      parses.mock.restore()
    }
  })

  it('a JSON body that is accepted is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(spelled, (text) => {
        let value: unknown
        try {
          value = parse(text)
        } catch (error) {
          // If valid JSON is refused, one of the stated reasons must apply.
          assert.ok(error instanceof GatewayError && error.status === 400)
          assert.ok(/__proto__|constructor|prototype|\\u|[\ufffe\uffff\0]|\d{16}|e\+/i.test(text), text)
          return
        }
        assert.deepEqual(value, JSON.parse(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it('a JSON body that JSON.parse refuses is refused, whatever the bytes are', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          spelled.chain((text) => fc.nat(text.length).map((at) => `${text.slice(0, at)}${text.slice(at + 1)}`)),
        ),
        (text) => {
          let isJson = true
          try {
            JSON.parse(text)
          } catch {
            isJson = false
          }
          if (!isJson) assert.throws(() => parse(text), GatewayError)
        },
      ),
      { numRuns: 2_000 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          parseJsonBody(Buffer.from(bytes))
        } catch (error) {
          assert.ok(error instanceof GatewayError && error.status === 400)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('a JSON body may begin with a byte order mark', () => {
    assert.deepEqual(parseJsonBody(Buffer.from('\ufeff{"a":1}')), { a: 1 })
  })

  it('a JSON body that is broken is INVALID_JSON', () => {
    for (const text of [
      '',
      ' ',
      '{',
      '{"a":1',
      '{"a":1}x',
      '{"a":NaN}',
      '{"a":Infinity}',
      "{'a':1}",
      '{a:1}',
      '[1,]',
      '01',
      '"\t"',
    ]) {
      refused(text, 'INVALID_JSON')
    }
  })

  it('a JSON body with a member twice is INVALID_JSON, however the name is spelled and however deep it is', () => {
    for (const text of ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"b":{"a":1,"c":[{"a":1}],"a":2}}]', '{"":1,"":2}']) {
      refused(text, 'INVALID_JSON')
    }
    assert.deepEqual(parse('[{"a":{"a":["a","a"]}},{"a":"a"}]'), [{ a: { a: ['a', 'a'] } }, { a: 'a' }])
  })

  it('a JSON body nested deeper than 32 levels is VALIDATION_ERROR, 500 000 levels included', () => {
    assert.ok(parse(nested(32)))
    for (const depth of [33, 500, 500_000]) {
      refused(nested(depth), 'VALIDATION_ERROR')
      refused(nested(depth, '{"a":', '}').replace('{"a":}', '{}'), 'VALIDATION_ERROR')
    }
    assert.deepEqual(parse(`["${'[{'.repeat(100)}\\""]`), [`${'[{'.repeat(100)}"`], 'brackets in a text are no levels')
  })

  it('a JSON body with a member such as __proto__ is refused, and changes no prototype', () => {
    for (const name of ['__proto__', 'constructor', 'prototype', '\\u005f_proto__']) {
      refused(`{"x":{"${name}":{"polluted":true}}}`, 'VALIDATION_ERROR')
    }
    assert.equal(Reflect.get({}, 'polluted'), undefined)
    assert.deepEqual(parse('["__proto__","constructor"]'), ['__proto__', 'constructor'], 'as values they are texts')
  })

  it('a JSON body with ill-formed text is INVALID_ENCODING, as name and as value', () => {
    for (const text of ['\\ud800', '\\udc00', 'a\\udc00\\ud800', '\\u0000', '\\ufffe', '\\uffff']) {
      refused(`{"a":"${text}"}`, 'INVALID_ENCODING')
      refused(`{"${text}":1}`, 'INVALID_ENCODING')
    }
    assert.deepEqual(parse('{"a":"\\ud83d\\udd11"}'), { a: '\u{1f511}' })
    for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      refused(Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]), 'INVALID_ENCODING')
    }
    refused(Buffer.from('{"a":1}', 'utf16le'), 'INVALID_JSON')
  })

  it('a JSON body with more than 10 000 members is VALIDATION_ERROR', () => {
    const members = (count: number) => `{${Array.from({ length: count }, (_, index) => `"m${index}":0`).join()}}`
    assert.ok(parse(members(10_000)))
    refused(members(10_001), 'VALIDATION_ERROR')
  })

  it('a JSON body with more values than fit into a call is VALIDATION_ERROR, whatever they are and wherever', () => {
    for (const value of ['1', '""', '[]', '{}', '"\\n"', '[[[0]]]'])
      refused(`{"a":[${`${value},`.repeat(32_800)}0]}`, 'VALIDATION_ERROR')
    assert.ok(parse(`[${'1.0123456789,'.repeat(32_000)}1]`))
    assert.ok(parse(`["${','.repeat(100_000)}"]`))
  })

  const held = ['0', '-0', '-1', '9007199254740991', '-9007199254740991', '1.0', '1.10', '1e3', '1E+3', '1.5e-7']
  const alsoHeld = ['0.1', '0.30000000000000004', '52.5200066', '1e-300', '0e999999999999', '0.000', '123456789012345']
  for (const number of [...held, ...alsoHeld]) {
    it(`the number ${number} of a JSON body is accepted, and its spelling is kept if JavaScript writes it differently`, () => {
      const body = parse(`{"a":"x","n":${number},"list":[true,${number}]}`) as { n: number; list: number[] }
      assert.deepEqual(body, { a: 'x', n: Number(number), list: [true, Number(number)] })
      const spelling = String(Number(number)) === number ? undefined : number
      assert.equal(spelledNumber(body, 'n'), spelling)
      assert.equal(spelledNumber(body.list, 1), spelling)
    })
  }

  const unsafe = ['9007199254740992', '9007199254740993', '-9007199254740993', '123456789012345678901234567890']
  const large = [
    '1e21',
    '1E+16',
    '1e400',
    '-1e400',
    `1${'0'.repeat(400)}`,
    '9007199254740993.0',
    '1e99999999999999999999',
  ]
  const small = [
    '1e-400',
    '0.1234567890123456789',
    '3.14159265358979323846',
    '4503599627370496.25',
    `0.${'0'.repeat(500)}1`,
  ]
  for (const number of [...unsafe, ...large, ...small]) {
    it(`the number ${number.slice(0, 40)} of a JSON body, which a double cannot hold, is refused wherever it is`, () => {
      for (const text of [number, `[[1,${number}]]`, `{"a":{"b":${number}}}`, `{ "b" : ${number} , "c":1}`]) {
        assert.throws(
          () => parse(text),
          (error) =>
            error instanceof GatewayError &&
            error.code === 'VALIDATION_ERROR' &&
            /send it as a string/.test(error.message),
        )
      }
      assert.deepEqual(parse(`{"a":"${number}"}`), { a: number }, 'as text it is taken')
    })
  }

  it('a JSON body is accepted with any parameters of its media type, if its bytes are UTF-8', () => {
    for (const parameter of [
      '',
      ';',
      '; charset=utf8',
      '; charset=UTF-8',
      ';charset="utf-8"',
      '; Charset="UTF8"',
      '; charset=latin1',
      '; charset=utf-16',
      '; charset=',
      '; charset',
      ' ; v=1; charset=x',
    ]) {
      for (const type of ['application/json', 'Application/JSON']) {
        const headers = { 'content-type': type + parameter }
        assert.deepEqual(readJsonBody(headers, Buffer.from('{"a":"é"}')), { a: 'é' }, parameter)
        assert.throws(
          () => readJsonBody(headers, Buffer.from('{"a":"é"}', 'latin1')),
          (error) => error instanceof GatewayError && error.code === 'INVALID_ENCODING',
        )
      }
    }
    for (const coding of ['', 'identity', 'Identity', ' IDENTITY ', 'identity, identity', ',identity,', 'utf-8']) {
      const headers = { 'content-type': 'application/json', 'content-encoding': coding }
      assert.deepEqual(readJsonBody(headers, Buffer.from('{}')), {}, coding)
    }
    for (const coding of ['gzip', 'identity, br', 'x'])
      assert.throws(
        () => readJsonBody({ 'content-type': 'application/json', 'content-encoding': coding }, Buffer.from('{}')),
        /The body must not be compressed/,
      )
    for (const type of ['application/jsonp', 'text/json; charset=utf-8', 'application/x+json', ''])
      assert.throws(
        () => readJsonBody({ 'content-type': type }, Buffer.from('{}')),
        (error) => error instanceof GatewayError && error.code === 'UNSUPPORTED_MEDIA_TYPE',
      )
  })
})
