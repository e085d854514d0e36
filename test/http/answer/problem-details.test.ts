import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../../src/errors.ts'
import { problemDetails } from '../../../src/http/answer/problem-details.ts'

it('problem details have the members of RFC 9457 and the code, hint and docs of our own form', () => {
  const error = new GatewayError('RATE_LIMIT_EXCEEDED', { retryAfterMs: 6_500 })
  assert.deepEqual(problemDetails(error, 'https://gateway.test', 'req_1'), {
    type: 'https://gateway.test/docs/errors#RATE_LIMIT_EXCEEDED',
    title: 'Rate limit exceeded.',
    status: 429,
    detail: 'Wait and send the call again, or ask the operator to upgrade the plan. retry_after=7',
    instance: 'urn:request:req_1',
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Wait and send the call again, or ask the operator to upgrade the plan. retry_after=7',
    docs: 'https://gateway.test/docs/errors#RATE_LIMIT_EXCEEDED',
  })
})
