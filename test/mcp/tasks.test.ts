import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { errorBody } from '../../src/http/answer/error-answer.ts'
import { resultOf } from '../../src/mcp/call-tool.ts'
import { isUnseen } from '../../src/mcp/tasks.ts'

test('the form of the answer distinguishes a failed look-up from a failed call', () => {
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

test('a model reads code, message and hint of a failure in the form of either route', () => {
  for (const isCall of [true, false]) {
    const error = new GatewayError('INVALID_TOKEN')
    const body = JSON.stringify(errorBody(error, 'http://gateway', isCall))
    const { isError, content } = resultOf({ status: 401, headers: {}, body }, {}, (data) => data)
    assert.equal(isError, true)
    const [text] = content
    assert.deepEqual(Object.keys(JSON.parse(text?.type === 'text' ? text.text : '')), [
      'code',
      'message',
      'hint',
      'docs',
    ])
  }
})
