import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { parseJsonBody } from '../../src/http/request/json-body.ts'
import { adaptTo, asWritten } from '../../src/mcp/adapt-arguments.ts'

const Input = Type.Object({
  query: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer()),
  ratio: Type.Optional(Type.Number()),
  isNew: Type.Optional(Type.Boolean()),
  take: Type.Optional(Type.Enum(['all', 'fit'])),
  fields: Type.Optional(Type.Array(Type.String())),
  parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  calls: Type.Optional(Type.Array(Type.Object({ id: Type.Integer(), note: Type.Optional(Type.String()) }))),
  name: Type.String(),
})

describe('arguments adapted to a schema', () => {
  it('values that mean nothing, such as null, are left out if the member is optional, at every level', () => {
    const given = { query: '', limit: null, take: ' ', fields: [], isNew: '', parameters: null, name: 'x' }
    assert.deepEqual(adaptTo(Input, given), { name: 'x' })
    assert.deepEqual(adaptTo(Input, { name: 'x', calls: [{ id: 1, note: '' }] }), { name: 'x', calls: [{ id: 1 }] })
    assert.deepEqual(adaptTo(Input, { name: '', undeclared: '' }), { name: '' })
    assert.deepEqual(adaptTo(Input, { name: null }), {})
  })

  it('JSON text that means nothing is left out like the value that it stands for', () => {
    const given = { limit: 'null', isNew: ' null ', fields: '[]', calls: 'null', parameters: ' [ ] ', name: 'null' }
    assert.deepEqual(adaptTo(Input, given), { name: 'null' })
    assert.deepEqual(adaptTo(Input, { parameters: '{}', name: '[]' }), { parameters: {}, name: '[]' })
  })

  it('JSON text is parsed if the schema expects an object or a list, and stays text if the schema expects text', () => {
    const given = { parameters: '{"a":""}', fields: '["a","b.c"]', calls: ' [{"id":"1"}] ', name: '{"a":1}' }
    assert.deepEqual(adaptTo(Input, given), {
      parameters: { a: '' },
      fields: ['a', 'b.c'],
      calls: [{ id: 1 }],
      name: '{"a":1}',
    })
    for (const wrong of ['{"a"', '[1]', '1', 'nil']) {
      assert.deepEqual(adaptTo(Input, { parameters: wrong }), { parameters: wrong }, wrong)
    }
    assert.deepEqual(adaptTo(Input, { fields: 'a, b[].c' }), { fields: ['a', 'b[].c'] })
    assert.deepEqual(adaptTo(Input, { fields: 'a,' }), { fields: ['a'] })
    for (const fields of [[null], ['', ' '], ',', '[null]']) assert.deepEqual(adaptTo(Input, { fields }), {})
  })

  // In quadratic time this would take a minute.
  it('a list in a text full of blanks is read in linear time', () => {
    const blanks = ' '.repeat(200_000)
    assert.deepEqual(adaptTo(Input, { fields: `a${blanks}b${blanks}, c` }), { fields: [`a${blanks}b`, 'c'] })
  })

  it('numbers, true and false are accepted as text, and a number is accepted in place of text', () => {
    const given = { limit: '3', ratio: ' -0.5 ', isNew: 'True', name: 17 }
    assert.deepEqual(adaptTo(Input, given), { limit: 3, ratio: -0.5, isNew: true, name: '17' })
    for (const wrong of ['0x10', '1e999', 'three', '+1', 'Infinity', '12345678901234567890', '9007199254740993']) {
      assert.deepEqual(adaptTo(Input, { limit: wrong }), { limit: wrong }, wrong)
    }
    const long = '52.520000000000000001'
    assert.deepEqual(adaptTo(Input, { ratio: long }), { ratio: long })
    assert.deepEqual(adaptTo(Input, { isNew: 'yes', name: true }), { isNew: 'yes', name: true })
  })

  it('a number keeps its text if JavaScript would write it differently, also in a list, but not deeper', () => {
    const parameters = '{"a":1.10,"b":[2.0,3],"c":1e3,"d":4,"e":"1.0","body":{"f":5.0}}'
    assert.deepEqual(asWritten(parseJsonBody(Buffer.from(parameters)) as Record<string, unknown>), {
      ...{ a: '1.10', b: ['2.0', 3], c: '1e3', d: 4, e: '1.0', body: { f: 5 } },
    })
  })

  it('JSON text that no body may hold is refused as arguments are', () => {
    const deep = `${'['.repeat(40)}1${']'.repeat(40)}`
    for (const text of ['{"__proto__":{}}', '{"id":9007199254740993}', '{"id":[1e400]}', '{"a":"\\ud800"}', deep]) {
      assert.throws(
        () => adaptTo(Type.Object({ x: Type.Object({}) }), { x: text }),
        { code: 'INVALID_PARAMETER' },
        text,
      )
    }
  })
})
