import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { errorBody } from '../../src/http/error-answer.ts'
import { isUnseen } from '../../src/mcp/tasks.ts'

test('a look-up that failed is told from a call that failed by the form of its answer', () => {
  const answer = (code: 'DEPENDENCY_UNAVAILABLE' | 'UPSTREAM_TIMEOUT' | 'CALL_NOT_FOUND', isCall: boolean) => {
    const error = new GatewayError(code)
    return { status: error.status, body: JSON.stringify(errorBody(error, 'http://gateway', isCall)) }
  }
  assert.equal(isUnseen(answer('DEPENDENCY_UNAVAILABLE', false)), true)
  assert.equal(isUnseen(answer('DEPENDENCY_UNAVAILABLE', true)), false)
  assert.equal(isUnseen(answer('UPSTREAM_TIMEOUT', true)), false)
  assert.equal(isUnseen(answer('CALL_NOT_FOUND', false)), false)
  assert.equal(isUnseen({ status: 202, body: '{"status":"pending"}' }), false)
  assert.equal(isUnseen({ status: 200, body: '[]' }), false)
})
