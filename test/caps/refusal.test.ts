import assert from 'node:assert/strict'
import { it } from 'node:test'
import { refusalOf } from '../../src/caps/refusal.ts'

it('a caller of a slow source reads that the source is slow and when to come again, not that the gateway is overloaded', () => {
  assert.deepEqual(refusalOf({ reason: 'overloaded', retryAfterMs: 2_300 }), {
    code: 'OVERLOADED',
    retryAfterMs: 2_300,
    message: 'This API answers slowly; its connections are all in use. Try again in 3 s.',
  })
  assert.equal(refusalOf({ reason: 'cap', retryAfterMs: 2_300 }).message, undefined)
})
