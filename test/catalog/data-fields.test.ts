import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { dataFields } from '../../src/catalog/data-fields.ts'
import { nullable } from '../../src/catalog/json.ts'

describe('the fields of data', () => {
  it('the fields of data say name, depth, type, meaning and recorded value of each member, and nested members come after their owner', () => {
    const schema = Type.Object({
      id: Type.Integer({ description: 'Number of the item' }),
      owner: nullable(Type.Object({ name: nullable(Type.String({ description: 'In full' })) })),
      tags: Type.Array(Type.String()),
      rates: Type.Record(Type.String(), Type.Number()),
      games: Type.Array(Type.Object({ score: nullable(Type.Integer()) })),
    })
    const example = { id: 7, owner: { name: null }, tags: ['a', 'b'], rates: { AUD: 1.5 }, games: [{ score: 3 }] }
    assert.deepEqual(
      dataFields(schema, example).map(({ name, depth, type, meaning, example: value }) =>
        [depth, name, type, meaning, value].join(' | '),
      ),
      [
        '0 | id | integer | Number of the item | 7',
        '0 | owner | object or null |  | ',
        '1 | name | string or null | In full | ',
        '0 | tags | list of strings |  | ["a","b"]',
        '0 | rates | object |  | ',
        '1 | AUD, … | number |  | 1.5',
        '0 | games | list of objects |  | ',
        '1 | score | integer or null |  | 3',
      ],
    )
  })

  it('the fields of data read a type list with null as they read a union with null', () => {
    const [field] = dataFields({ properties: { a: { type: ['string', 'null'], description: 'x' } } }, { a: 'v' })
    const free = { bounds: '', isRequired: false, fallback: '' }
    assert.deepEqual(field, { name: 'a', depth: 0, type: 'string or null', ...free, meaning: 'x', example: '"v"' })
  })

  it('the fields of a body say what is required, within which bounds, and what is the default', () => {
    const body = Type.Object({
      calls: Type.Array(Type.Object({ api: Type.String({ maxLength: 64 }) }), { minItems: 1, maxItems: 50 }),
      take: Type.Optional(Type.Enum(['all', 'fit'], { default: 'all' })),
      limit: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 9, default: 0 }))),
      above: Type.Optional(Type.Number({ exclusiveMinimum: 0, multipleOf: 5 })),
      name: Type.String({ minLength: 1, maxLength: 100, pattern: '\\S' }),
      secret: Type.String({ minLength: 8, maxLength: 256 }),
      code: Type.String({ minLength: 2, maxLength: 2, pattern: '^[A-Za-z]{2}$' }),
      until: Type.Optional(Type.String({ format: 'date-time' })),
      groups: Type.Array(Type.Enum(['day', 'api'])),
    })
    assert.deepEqual(
      dataFields(body, {}).map(({ name, type, bounds, isRequired, fallback }) =>
        [name, type, bounds, isRequired ? 'required' : '', fallback].join(' | '),
      ),
      [
        'calls | list of objects | 1–50 items | required | ',
        'api | string | up to 64 characters | required | ',
        'take | one of all, fit |  |  | all',
        'limit | integer or null | 0–9 |  | 0',
        'above | number | more than 0, a multiple of 5 |  | ',
        'name | string | up to 100 characters, not blank | required | ',
        'secret | string | 8–256 characters | required | ',
        'code | string | 2 letters | required | ',
        'until | string | date and time: YYYY-MM-DDThh:mm:ssZ |  | ',
        'groups | list of: one of day, api |  | required | ',
      ],
    )
  })

  it('the fields of data know the type and meaning of every member of every endpoint', async () => {
    for (const [slug, { endpoints }] of await loadUpstreams()) {
      for (const [path, { data, example }] of Object.entries(endpoints)) {
        const fields = dataFields(data, example.data)
        assert.ok(fields.length >= Object.keys(data.properties).length)
        for (const { name, type, meaning } of fields) {
          assert.ok(type !== 'any' || name.endsWith('…'), `type of ${slug}${path} ${name}`)
          assert.notEqual(meaning, '', `meaning of ${slug}${path} ${name}`)
        }
      }
    }
  })
})
