import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { describe, it } from 'node:test'
import { argon2id, hash, verify } from 'argon2'
import {
  hashPassword,
  isAcceptablePassword,
  isHashOfRawText,
  isOutdatedHash,
  isPasswordOf,
} from '../../src/accounts/password.ts'
import { GatewayError } from '../../src/errors.ts'

/** A hash of the same kind that is very cheap to compare with. */
const cheapHash = (text: string): Promise<string> =>
  hash(text, { type: argon2id, memoryCost: 8, timeCost: 1, parallelism: 1 })

describe('a password', () => {
  it('a password has 8 to 256 code points, whatever they are', () => {
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

  it('a password is hashed with argon2id at the documented cost, each time under another salt', async () => {
    const [first, second] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')])
    assert.match(first, /^\$argon2id\$v=19\$m=19456,(t=3,p=1|p=1,t=3)\$/)
    assert.notEqual(first, second)
    assert.ok(!isOutdatedHash(first))
    assert.ok(
      isOutdatedHash(await hash('correct horse', { type: argon2id, memoryCost: 8_192, timeCost: 1, parallelism: 1 })),
    )
  })

  it('a password that was hashed by another argon2 library is still right', async () => {
    const stored = '$argon2id$v=19$m=19456,t=3,p=1$w+kOcsyn1CUP6JGwLtVUIw$JzXF1t0twJJYUlLVCUyZCfjLZUR4po1Zo7WW7/dJQGE'
    assert.equal(await isPasswordOf(stored, 'correct horse'), true)
    assert.equal(await isPasswordOf(stored, 'correct horses'), false)
    assert.ok(!isOutdatedHash(stored))
  })

  it('a password is the same in each Unicode form, is counted in one of them, and old hashes of the raw text match it too', async () => {
    for (const text of [
      'p\u00e4ssw\u00f6rt \u00e9t\u00e9',
      '\ud55c\uad6d\uc5b4 \ube44\ubc00\ubc88\ud638',
      '\u212bngstr\u00f6m lang',
    ]) {
      const [nfc, nfd] = [text.normalize('NFC'), text.normalize('NFD')]
      assert.notEqual(nfc, nfd)
      // The same password matches, whichever Unicode form it had when the hash was made.
      assert.equal(await verify(await hashPassword(nfd), nfc), true)
      const stored = await cheapHash(nfc)
      for (const given of [nfc, nfd, text]) assert.equal(await isPasswordOf(stored, given), true)
      assert.equal(await isHashOfRawText(stored, nfd), false)
      const raw = await cheapHash(nfd)
      assert.equal(await isPasswordOf(raw, nfd), true)
      assert.equal(await isHashOfRawText(raw, nfd), true)
      assert.equal(await isPasswordOf(raw, `${nfd}x`), false)
      assert.equal(await isPasswordOf(undefined, nfd), false)
    }
    // Option and space make U+00A0 on a Mac, and East Asian keyboards make U+3000.
    const spaced = await cheapHash('correct horse')
    for (const space of ['\u00a0', '\u2003', '\u3000'])
      assert.equal(await isPasswordOf(spaced, `correct${space}horse`), true)
    assert.equal(await verify(await hashPassword('correct\u3000horse'), 'correct horse'), true)
    assert.equal(await isPasswordOf(spaced, 'correct\thorse'), false)
    assert.ok(!isAcceptablePassword('e\u0301'.repeat(7)))
    assert.ok(isAcceptablePassword('e\u0301'.repeat(256)))
    assert.equal(await isPasswordOf(await cheapHash('fishfish'), 'ﬁshfish'), false, 'other letters stay other letters')
  })

  it('a password of a client waits for one password of each other client, not for all passwords that the other clients have sent', async () => {
    const order: string[] = []
    const stored = await cheapHash('right')
    const compare = (client: string) =>
      isPasswordOf(stored, 'x', client).then(
        () => order.push(client),
        () => order.push('refused'),
      )
    const flood = Array.from({ length: 60 }, () => compare('192.0.2.1'))
    await Promise.all([...flood, compare('192.0.2.2')])
    const served = order.filter((client) => client !== 'refused')
    assert.ok(served.indexOf('192.0.2.2') <= 2 * availableParallelism(), served.join())
    assert.ok(served.length <= 30 + availableParallelism() + 1)
  })

  it('a password is compared exactly: no byte is cut or trimmed', async () => {
    const pairs: [string, string][] = [
      [`${'a'.repeat(72)}x`, `${'a'.repeat(72)}y`],
      ['password1', 'password1 '],
      ['password1', 'Password1'],
      ['passwo\0rd1', 'passwo'],
    ]
    for (const [password, other] of pairs) {
      const stored = await cheapHash(password)
      assert.equal(await isPasswordOf(stored, password), true)
      assert.equal(await isPasswordOf(stored, other), false, `${password} is not ${other}`)
    }
  })

  it('a password never matches if there is no account', async () => {
    assert.equal(await isPasswordOf(undefined, 'no account has this password'), false)
    assert.equal(await isPasswordOf(undefined, ''), false)
  })

  it('a password waits for a free slot of the hash, and is refused with a Retry-After if too many passwords wait', async () => {
    const stored = await cheapHash('right')
    const compare = (index: number) => isPasswordOf(stored, 'x', `192.0.2.${index % 10}`)
    const results = await Promise.allSettled(Array.from({ length: 130 }, (_, index) => compare(index)))
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    assert.ok(refused.length > 0 && refused.length <= 30, `${refused.length} refused`)
    for (const error of refused) {
      assert.ok(error instanceof GatewayError)
      assert.equal(error.code, 'LOGIN_THROTTLED')
      // It may belong to a sign-up, in which case nobody tried to log in with it.
      assert.doesNotMatch(`${error.message} ${error.details.hint}`, /log/)
      assert.ok((error.details.retryAfterMs ?? 0) > 0)
    }
    assert.equal(await isPasswordOf(undefined, 'x'), false, 'the turn is free again')
  })
})
