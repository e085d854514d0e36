import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Concurrency } from '../../src/async/concurrency.ts'

describe('work that is bounded', () => {
  it('bounded work runs at most the given number of tasks at once, in order, also after a failure', async () => {
    const concurrency = new Concurrency(3)
    const started: number[] = []
    let [running, most] = [0, 0]
    const work = async (index: number) => {
      started.push(index)
      running += 1
      most = Math.max(most, running)
      await new Promise(setImmediate)
      running -= 1
      if (index % 2 === 0) throw new Error(`${index}`)
      return index
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => concurrency.run(() => work(index))),
    )
    assert.equal(most, 3)
    assert.deepEqual(started, [...started.keys()])
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 10)
    assert.equal(await concurrency.run(async () => 'still'), 'still')
  })
})
