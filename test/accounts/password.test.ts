import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hash } from '@node-rs/argon2'
import { hashPassword, isAcceptablePassword, isOutdatedHash, isPasswordOf } from '../../src/accounts/password.ts'
import { GatewayError } from '../../src/errors.ts'

describe('a password', () => {
  it('has 8 to 256 code points, whatever they are', () => {
    for (const good of ['12345678', ' '.repeat(8), '\u{1f511}'.repeat(8), '\u{1f511}'.repeat(256), 'x'.repeat(256)]) {
      assert.ok(isAcceptablePassword(good), `${good.length} units`)
    }
    for (const bad of [
      '',
      '1234567',
      '\u{1f511}'.repeat(7),
      '\u{1f511}'.repeat(257),
      'x'.repeat(257),
      'x'.repeat(1e6),
    ]) {
      assert.ok(!isAcceptablePassword(bad), `${bad.length} units`)
    }
  })

  it('is hashed with argon2id at the documented cost, each time under another salt', async () => {
    const [first, second] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')])
    assert.match(first, /^\$argon2id\$v=19\$m=19456,t=3,p=1\$/)
    assert.notEqual(first, second)
    assert.ok(!isOutdatedHash(first))
    assert.ok(isOutdatedHash(await hash('correct horse', { algorithm: 2, memoryCost: 8_192, timeCost: 1 })))
  })

  it('is compared exactly: no byte is cut, trimmed or normalised', async () => {
    const pairs: [string, string][] = [
      [`${'a'.repeat(72)}x`, `${'a'.repeat(72)}y`],
      ['caf\u00e9-caf\u00e9', 'cafe\u0301-cafe\u0301'],
      ['password1', 'password1 '],
      ['password1', 'Password1'],
      ['passwo\0rd1', 'passwo'],
    ]
    for (const [password, other] of pairs) {
      const stored = await hashPassword(password)
      assert.equal(await isPasswordOf(stored, password), true)
      assert.equal(await isPasswordOf(stored, other), false, `${password} is not ${other}`)
    }
  })

  it('of nobody is never right', async () => {
    assert.equal(await isPasswordOf(undefined, 'no account has this password'), false)
    assert.equal(await isPasswordOf(undefined, ''), false)
  })

  it('waits its turn, and is refused with a time to come again when too many wait', async () => {
    const results = await Promise.allSettled(Array.from({ length: 130 }, () => isPasswordOf(undefined, 'x')))
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    assert.ok(refused.length > 0 && refused.length <= 30, `${refused.length} refused`)
    for (const error of refused) {
      assert.ok(error instanceof GatewayError)
      assert.equal(error.code, 'LOGIN_THROTTLED')
      assert.ok((error.details.retryAfterMs ?? 0) > 0)
    }
    assert.equal(await isPasswordOf(undefined, 'x'), false, 'the turn is free again')
  })
})
