import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../../src/errors.ts'
import { prefersProblem, problemDetails } from '../../../src/http/answer/problem-details.ts'

it('problem details are preferred if Accept names them and names no JSON above them', () => {
  for (const accept of [
    'application/problem+json',
    'application/json, application/problem+json',
    'application/problem+json;q=0.9, application/json;q=0.5',
    'APPLICATION/PROBLEM+JSON ; charset=utf-8',
  ]) {
    assert.equal(prefersProblem(accept), true, accept)
  }
  for (const accept of [
    undefined,
    '*/*',
    'application/json',
    'application/json, application/problem+json;q=0.5',
    'application/problem+json;q=0',
    'application/problem+json;q=x',
  ]) {
    assert.equal(prefersProblem(accept), false, accept)
  }
})

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
