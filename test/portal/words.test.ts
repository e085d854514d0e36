import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ERRORS, type ErrorCode, GatewayError } from '../../src/errors.ts'
import { publicError } from '../../src/http/answer/public-error.ts'
import { weakness } from '../../src/portal/assets/password.js'
import { callerWords, forPeople } from '../../src/portal/assets/words.js'

const told = (code: ErrorCode, details = {}): string =>
  forPeople(publicError(new GatewayError(code, details), 'http://localhost:3000'))

describe('the portal’s words for failures', () => {
  it('the portal’s words for failures name no route, header or token of any code', () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const words = told(code, { tokens: { param: 'x', limit: 10 }, retryAfterMs: 52_000 })
      assert.ok(words.length > 10, code)
      assert.doesNotMatch(words, /\/v1\/|\b(GET|POST|PUT|DELETE) |\b(param|limit|retry_after|upgrade_to)=/, code)
    }
  })

  it('the portal’s words for failures keep a message that differs from the usual message of its code', () => {
    for (const code of [
      'INVALID_API_KEY',
      'INVALID_TOKEN',
      'KEY_LIMIT_REACHED',
      'PROVIDER_KEY_REQUIRED',
      'LOGIN_THROTTLED',
    ] as const) {
      const other = { message: 'Something else.', hint: 'Do that' }
      assert.equal(told(code, other), 'Something else. Do that.', code)
      const { message, hint } = ERRORS[code]
      assert.ok(![message, `${message} ${hint}.`].includes(told(code)), `${code} has short words of its own`)
    }
    assert.equal(
      told('RATE_LIMIT_EXCEEDED', { hint: 'Wait before you add more members', retryAfterMs: 9_000 }),
      'Rate limit exceeded. Wait before you add more members. Try again in 9 s.',
    )
  })

  it('the portal’s words for failures name the field of a form, and no member of a request', () => {
    assert.equal(
      told('VALIDATION_ERROR', { message: 'Member email must be an email address.', tokens: { param: 'email' } }),
      'Email must be an email address.',
    )
  })

  it('the portal’s words for failures say how long to wait and which plan is needed', () => {
    assert.equal(
      told('RATE_LIMIT_EXCEEDED', { tokens: { limit: 10 }, retryAfterMs: 52_000 }),
      'You have used your 10 calls of this minute. Try again in 52 s.',
    )
    assert.equal(
      told('RATE_LIMIT_EXCEEDED', { tokens: { limit: 1 }, retryAfterMs: 1_000_000_000 }),
      'You have used your 1 call of this minute. Try again in 12 days.',
    )
    assert.equal(told('LOGIN_THROTTLED', { retryAfterMs: 121_000 }), 'Too many attempts. Try again in 3 min.')
    assert.match(told('PLAN_UPGRADE_REQUIRED', { tokens: { upgrade_to: 'pro' } }), /the Pro plan/)
  })

  it('the portal’s words for failures say that the limit of a key is used up, and not the limit of the account', () => {
    for (const code of ['RATE_LIMIT_EXCEEDED', 'MONTHLY_QUOTA_EXCEEDED', 'CONCURRENCY_LIMIT_EXCEEDED'] as const) {
      const details = { message: 'This key allows 5 calls.', tokens: { limit: 5, limit_of: 'key' } }
      assert.equal(told(code, details), 'This key allows 5 calls.', code)
    }
  })
})

describe('the portal’s words for callers', () => {
  it('the portal’s words for callers name a key, and an application that is signed in, which is no revoked key', () => {
    const callers = {
      keys: [{ id: 'k', label: 'laptop', keyPrefix: 'agw_live_', lastFour: 'abcd' }],
      connections: [{ id: 'c', clientName: 'Claude' }],
    }
    assert.equal(callerWords('k', callers), 'laptop (agw_live_…abcd)')
    assert.equal(callerWords('c', callers), 'Claude (connected app)')
    assert.equal(callerWords('session', {}), 'Portal and sessions')
    assert.match(callerWords('gone', callers), /revoked key.*signed out/)
    assert.match(callerWords('other', callers), /^Free calls/)
    assert.doesNotMatch(callerWords('k', { connections: callers.connections }), /revoked/)
  })
})

describe('the warning of a weak password', () => {
  it('the warning of a weak password comes for what attackers try first, and for nothing else', () => {
    for (const password of ['password123', 'PASSWORD123', 'aaaaaaaaaa', '8412673509'])
      assert.notEqual(weakness(password), '')
    for (const password of ['short', 'correct horse battery', 'pa55 w0rd of mine']) assert.equal(weakness(password), '')
  })
})
