import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Batcher } from '../../src/async/batcher.ts'

/** A batcher and the batches of one key that it sent. */
function recordBatches(itemsMax: number) {
  const sent: number[][] = []
  const send = async (items: number[]) => {
    sent.push(items)
    return items
  }
  return { sent, batcher: new Batcher(send, { itemsMax }) }
}

describe('a batcher', () => {
  it('a batcher sends the items of one key and one tick together, and gives each item its own result', async () => {
    const sent: [string, number[]][] = []
    const batcher = new Batcher<number, string>(
      async (items, key) => {
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

  it('a batcher splits what is more than a batch may hold', async () => {
    const { batcher, sent } = recordBatches(2)
    assert.deepEqual(await Promise.all([1, 2, 3, 4, 5].map((item) => batcher.add('', item))), [1, 2, 3, 4, 5])
    assert.deepEqual(sent, [[1, 2], [3, 4], [5]])
  })

  it('a batcher fails the items of a batch that could not be sent, and no others', async () => {
    const batcher = new Batcher<string, string>(
      async (items, key) => {
        if (key === 'bad') throw new Error('not sent')
        return items
      },
      { itemsMax: 16 },
    )
    const [bad, good] = await Promise.allSettled([batcher.add('bad', 'x'), batcher.add('good', 'y')])
    assert.equal(bad.status, 'rejected')
    assert.deepEqual(good, { status: 'fulfilled', value: 'y' })
  })

  it('a batcher gathers over three ticks after a gathering of several items, and over one after a single one', async () => {
    const { batcher, sent } = recordBatches(16)
    await Promise.all([batcher.add('', 1), batcher.add('', 2)])
    const first = batcher.add('', 3)
    await setImmediate()
    await setImmediate()
    assert.deepEqual(sent, [[1, 2]])
    await Promise.all([first, batcher.add('', 4)])
    assert.deepEqual(sent.at(-1), [3, 4])
    await batcher.add('', 5)
    const alone = batcher.add('', 6)
    await setImmediate()
    assert.deepEqual(sent.at(-1), [6])
    await alone
  })

  it('a batcher sends a full batch at once, however busy it is', async () => {
    const { batcher, sent } = recordBatches(2)
    const added = [1, 2, 3].map((item) => batcher.add('', item))
    assert.deepEqual(sent, [[1, 2]])
    await Promise.all(added)
    assert.deepEqual(sent, [[1, 2], [3]])
  })

  it('a batcher that gathers for a time sends what is flushed at once, and all that is left when it is drained', async () => {
    const sent: string[] = []
    const { promise: isSent, resolve: finish } = Promise.withResolvers<void>()
    const send = async (items: string[], key: string) => {
      sent.push(`${key}: ${items}`)
      await isSent
      return []
    }
    const batcher = new Batcher<string>(send, { gatherMs: 3_600_000 })
    for (const [key, item] of [
      ['a', 'one'],
      ['b', 'two'],
      ['a', 'three'],
    ] as const)
      void batcher.add(key, item)
    batcher.flush('a')
    batcher.flush('nothing of this key')
    assert.deepEqual(sent, ['a: one,three'])
    let isDrained = false
    const draining = batcher.drain().then(() => {
      isDrained = true
    })
    assert.deepEqual(sent, ['a: one,three', 'b: two'])
    await setImmediate()
    assert.equal(isDrained, false)
    finish()
    await draining
  })
})
