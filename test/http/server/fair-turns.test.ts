import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FairTurns } from '../../../src/http/server/fair-turns.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('the turns of the event loop', () => {
  it('in each turn of the event loop, a client gets at most 128 requests handled, in order, and other clients get theirs too', async () => {
    const turns = new FairTurns()
    const [flood, other] = [{}, {}]
    const begun: number[] = []
    const request = (index: number): void => {
      if (!turns.mayBegin(flood, () => request(index))) return
      turns.begin(flood, 1)
      begun.push(index)
    }
    for (let index = 0; index < 1_000; index += 1) request(index)
    assert.equal(begun.length, 128)
    assert.ok(turns.mayBegin(other, () => assert.fail()))
    for (let count = 2; count <= 7; count += 1) {
      await turn()
      assert.equal(begun.length, 128 * count)
    }
    await turn()
    assert.deepEqual(begun, [...Array(1_000).keys()])
  })
})
