import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Batcher } from '../../src/async/batcher.ts'

describe('a batcher', () => {
  it('a batcher sends together what was resolved together, and what came meanwhile when that is done', async () => {
    const sent: number[][] = []
    const { promise: isSent, resolve: finish } = Promise.withResolvers<void>()
    const batcher = new Batcher<number>(async (_key, items) => {
      sent.push(items)
      if (sent.length === 1) await isSent
    })
    const together = Promise.resolve()
    await Promise.all([1, 2, 3].map((item) => together.then(() => batcher.add('', item))))
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(sent, [[1, 2, 3]])
    batcher.add('', 4)
    batcher.add('', 5)
    assert.equal(sent.length, 1)
    finish()
    await batcher.drain()
    assert.deepEqual(sent, [
      [1, 2, 3],
      [4, 5],
    ])
  })

  it('a batcher that is drained sends what is left without its pause', async () => {
    const sent: string[] = []
    const batcher = new Batcher<string>(async (key, items) => void sent.push(`${key}: ${items}`), {
      pauseMs: 3_600_000,
    })
    batcher.add('a', 'one')
    await new Promise((resolve) => setImmediate(resolve))
    batcher.add('a', 'two')
    batcher.add('b', 'three')
    await batcher.drain()
    assert.deepEqual(sent.sort(), ['a: one', 'a: two', 'b: three'])
  })
})
