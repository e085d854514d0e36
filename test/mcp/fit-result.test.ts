import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fitData, shareOf } from '../../src/mcp/fit-result.ts'

const lengthOf = (value: unknown) => JSON.stringify(value).length

describe('data that are too long for a model', () => {
  it('data that are too long lose items of the longest list, and the hint names short members of an item', () => {
    const comments = Array.from({ length: 500 }, (_, id) => ({ id, email: 'a@b.example', body: 'x'.repeat(250) }))
    const { data, truncated } = fitData({ comments, tags: ['a', 'b'] }, 10_000)
    assert.ok(lengthOf({ data, truncated }) <= 10_000)
    const { comments: shown, tags } = data as { comments: unknown[]; tags: string[] }
    assert.deepEqual(tags, ['a', 'b'])
    assert.deepEqual(shown, comments.slice(0, shown.length))
    assert.ok(shown.length > 25, String(shown.length))
    assert.deepEqual([truncated?.path, truncated?.of, truncated?.shown], ['comments', 500, shown.length])
    assert.equal(truncated?.hint, 'Request fewer fields, such as comments[].id, comments[].email.')
  })

  it('data that are too long without a list have their longest text cut', () => {
    const { data, truncated } = fitData({ title: 'short', extract: 'é"\n'.repeat(20_000) }, 5_000)
    assert.ok(lengthOf({ data, truncated }) <= 5_000)
    assert.equal(data.title, 'short')
    assert.equal(truncated?.path, 'extract')
    assert.equal(truncated?.of, 60_000)
    assert.equal(String(data.extract).length, (truncated?.shown ?? 0) + 1)
  })

  it('one item that is too long by itself is cut inside', () => {
    const { data, truncated } = fitData({ list: [{ text: 'x'.repeat(9_000), inner: [1, 2] }, { text: 'y' }] }, 4_000)
    assert.ok(lengthOf({ data, truncated }) <= 4_000)
    assert.equal((data.list as unknown[]).length, 1)
    assert.match(truncated?.hint ?? '', /Also shortened: list\.$|Also shortened: .*list/)
  })

  it('data that fit are the same data', () => {
    const data = { list: [1, 2, 3] }
    assert.equal(fitData(data, 1_000).data, data)
  })

  it('any data can be cut to any length, and the result states what was cut', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 })),
        fc.integer({ min: 700, max: 3_000 }),
        (given, max) => {
          const value = JSON.parse(
            JSON.stringify({ ...given, again: [given, given, given], text: JSON.stringify(given) }),
          )
          const { data, truncated } = fitData(value, max)
          assert.ok(lengthOf(data) + (truncated ? lengthOf(truncated) : 0) <= max)
          assert.equal(truncated === undefined, lengthOf(value) <= max)
        },
      ),
      { numRuns: 100 },
    )
  })

  it('answers share a bound in equal parts, and what one does not need goes to the others', () => {
    assert.equal(shareOf([10, 20], 100), 100)
    assert.equal(shareOf([10, 500, 500], 100), 45)
    assert.equal(shareOf([500, 500], 100), 50)
    assert.equal(shareOf([1, 1], 0), 0)
  })
})
