import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Renderings } from '../../src/pages/rendering.ts'
import { until } from '../support/gateway.ts'

describe('a rendering', () => {
  it('a rendering is made once while its state stays the same, and anew soon after the state has changed', async () => {
    let state = 'first'
    let made = 0
    const renderings = new Renderings<string>(() => state)
    const get = () =>
      renderings.get('page', async () => {
        made += 1
        return state
      })
    assert.deepEqual(await Promise.all(Array.from({ length: 100 }, get)), Array(100).fill('first'))
    assert.equal(made, 1)
    state = 'second'
    await until(async () => (await get()) === 'second', 2_000)
    assert.equal(made, 2)
  })

  it('a rendering that fails is not kept', async () => {
    const renderings = new Renderings<string>(() => 'state')
    await assert.rejects(
      renderings.get('page', () => Promise.reject(new Error('not now'))),
      /not now/,
    )
    assert.equal(await renderings.get('page', () => 'made'), 'made')
  })
})
