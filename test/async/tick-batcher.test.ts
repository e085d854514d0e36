import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TickBatcher } from '../../src/async/tick-batcher.ts'

describe('a tick batcher', () => {
  it('a tick batcher sends what came under one key in one turn together, and gives each item its own result', async () => {
    const sent: [string, number[]][] = []
    const batcher = new TickBatcher<number, string>(
      async (key, items) => {
        sent.push([key, items])
        return items.map((item) => `${key}${item}`)
      },
      { itemsMax: 16 },
    )
    const results = await Promise.all([batcher.add('a', 1), batcher.add('b', 2), batcher.add('a', 3)])
    assert.deepEqual(results, ['a1', 'b2', 'a3'])
    assert.deepEqual(sent, [
      ['a', [1, 3]],
      ['b', [2]],
    ])
    assert.equal(await batcher.add('a', 4), 'a4')
    assert.equal(sent.length, 3)
  })

  it('a tick batcher splits what is more than a batch may hold', async () => {
    const sizes: number[] = []
    const batcher = new TickBatcher<number, number>(
      async (_key, items) => {
        sizes.push(items.length)
        return items
      },
      { itemsMax: 2 },
    )
    assert.deepEqual(await Promise.all([1, 2, 3, 4, 5].map((item) => batcher.add('', item))), [1, 2, 3, 4, 5])
    assert.deepEqual(sizes, [2, 2, 1])
  })

  it('a tick batcher fails the items of a batch that could not be sent, and no others', async () => {
    const batcher = new TickBatcher<string, string>(
      async (key, items) => {
        if (key === 'bad') throw new Error('not sent')
        return items
      },
      { itemsMax: 16 },
    )
    const [bad, good] = await Promise.allSettled([batcher.add('bad', 'x'), batcher.add('good', 'y')])
    assert.equal(bad.status, 'rejected')
    assert.deepEqual(good, { status: 'fulfilled', value: 'y' })
  })
})
