import assert from 'node:assert/strict'
import { it } from 'node:test'
import { refusalOf, UpstreamDownError } from '../../src/caps/refusal.ts'

it('a caller of a slow source reads that the source is slow and when to come again, not that the gateway is overloaded', () => {
  assert.deepEqual(refusalOf({ reason: 'overloaded', retryAfterMs: 2_300 }), {
    code: 'OVERLOADED',
    retryAfterMs: 2_300,
    message: 'This API answers slowly; its connections are all in use. Try again in 3 s.',
  })
  assert.equal(refusalOf({ reason: 'cap', retryAfterMs: 2_300 }).message, undefined)
})

it('a refusal because the source is down has the words of the last failure, for its caller and for the log', () => {
  const down = { reason: 'down', retryAfterMs: 2_300 } as const
  const refusal = refusalOf({ ...down, lastFailure: { words: 'no answer in 10.0 s' } })
  assert.equal(refusal.message, 'The upstream API is down (no answer in 10.0 s).')
  assert.ok(refusal.cause instanceof UpstreamDownError)
  assert.equal(refusal.cause.message, 'no answer in 10.0 s')
  assert.equal('cause' in refusalOf(down), false)
})
