import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { dataFields } from '../../src/catalog/data-fields.ts'
import { nullable } from '../../src/catalog/json.ts'

describe('the fields of data', () => {
  it('the fields of data say name, depth, type, meaning and recorded value of each member, nested ones after their owner', () => {
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
    assert.deepEqual(field, { name: 'a', depth: 0, type: 'string or null', meaning: 'x', example: '"v"' })
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
