import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { nullable } from '../../src/catalog/json.ts'
import { hasTopList, select, unknownField } from '../../src/mcp/selection.ts'

const Data = Type.Object({
  base: nullable(Type.String()),
  rates: Type.Record(Type.String(), Type.Number()),
  results: Type.Array(
    Type.Object({ title: Type.String(), place: nullable(Type.Object({ lat: Type.Number(), lon: Type.Number() })) }),
  ),
  tags: Type.Array(Type.String()),
})
const data = {
  base: 'EUR',
  rates: { USD: 1.1, CHF: 0.9 },
  results: [
    { title: 'one', place: { lat: 1, lon: 2 } },
    { title: 'two', place: null },
  ],
  tags: ['a', 'b', 'c'],
}

describe('a selection', () => {
  it('a selection takes members, members of members and members of items', () => {
    assert.deepEqual(select(data, { fields: ['base'] }), { base: 'EUR' })
    assert.deepEqual(select(data, { fields: ['rates.USD', 'tags'] }), { rates: { USD: 1.1 }, tags: ['a', 'b', 'c'] })
    assert.deepEqual(select(data, { fields: ['results[].place.lat'] }), {
      results: [{ place: { lat: 1 } }, { place: null }],
    })
    assert.deepEqual(select(data, { fields: ['results[].title', 'results', 'results[]'] }), { results: data.results })
    assert.deepEqual(select(data, { fields: ['tags[]'] }), { tags: data.tags })
    assert.equal(select(data, {}), data)
  })

  it('a selection with a limit has so many items of each list at the top', () => {
    const { results, tags } = select(data, { limit: 1 }) as typeof data
    assert.deepEqual([results.length, tags.length], [1, 1])
    assert.deepEqual(select(data, { limit: 1, fields: ['results[].title'] }), { results: [{ title: 'one' }] })
    assert.equal(hasTopList(Data), true)
    assert.equal(hasTopList(Type.Object({ base: Type.String() })), false)
  })

  it('a path that the schema does not have is refused with the nearest path, or with the existing members', () => {
    assert.equal(unknownField({ fields: ['base', 'rates.USD', 'results[].place.lon', 'tags[]'] }, Data), undefined)
    const nearest = {
      'results[].titel': 'results[].title',
      'results.title': 'results[].title',
      'results[0].title': 'results[].title',
      'data.base': 'base',
      'data.results[].title': 'results[].title',
      title: 'results[].title',
      tag: 'tags',
      'base.': 'base',
    }
    for (const [given, meant] of Object.entries(nearest)) {
      assert.equal(
        unknownField({ fields: [given] }, Data),
        `Argument fields names ${given.includes('[0]') ? 'a path' : given}, which the data does not have; did you mean ${meant}?`,
      )
    }
    for (const given of ['nothing', '', '.', '__proto__', 'constructor', 'toString.name', 'a.'.repeat(50)]) {
      assert.match(
        unknownField({ fields: [given] }, Data) ?? '',
        /the members of the data are base, rates, results, tags/,
      )
    }
  })

  it('a selection of a map has only own members of the map, whatever their names are', () => {
    assert.equal(unknownField({ fields: ['rates.__proto__'] }, Data), undefined)
    const taken = select(data, { fields: ['rates.__proto__', 'rates.constructor', 'rates.CHF'] })
    assert.deepEqual(taken, { rates: { CHF: 0.9 } })
    assert.equal(Object.getPrototypeOf(taken.rates), Object.prototype)
  })

  it('a path is known where the document of an own API does not say which members there are', () => {
    const text = { type: 'string' }
    const counts = { type: 'object', properties: {}, additionalProperties: { type: 'integer' } }
    const data = { type: 'object', properties: { counts, any: {}, text, list: { type: 'array', items: {} } } }
    for (const field of ['counts.sold', 'any.a[].b', 'list[].a'])
      assert.equal(unknownField({ fields: [field] }, data), undefined, field)
    for (const field of ['counts.sold.a', 'text.a', 'list.a', 'none'])
      assert.match(unknownField({ fields: [field] }, data) ?? '', /which the data does not have/, field)
    assert.equal(unknownField({ fields: ['a.b'] }, { type: 'object', properties: {} }), undefined)
  })
})
