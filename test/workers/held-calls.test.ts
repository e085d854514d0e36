import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { PausedMode } from '../../src/catalog/catalog.ts'
import { HeldCalls } from '../../workers/jobs/held-calls.ts'

it('a call waits while an operator holds its API, and calls of other APIs do not wait', async () => {
  const held = new HeldCalls()
  const api: { pausedMode: PausedMode | undefined } = { pausedMode: 'hold' }
  const { signal } = new AbortController()
  await held.wait({ pausedMode: undefined }, signal)
  await held.wait({ pausedMode: 'refuse' }, signal)
  let isOver = false
  const waiting = held.wait(api, signal).then(() => {
    isOver = true
  })
  held.look()
  await new Promise(setImmediate)
  assert.equal(isOver, false)
  api.pausedMode = undefined
  held.look()
  await waiting
})

it('a held call ends at its deadline, or when its caller leaves', async () => {
  const held = new HeldCalls()
  const [before, during] = [new AbortController(), new AbortController()]
  before.abort(new Error('left'))
  await assert.rejects(held.wait({ pausedMode: 'hold' }, before.signal), /left/)
  const waiting = held.wait({ pausedMode: 'hold' }, during.signal)
  during.abort(new Error('late'))
  await assert.rejects(waiting, /late/)
})
