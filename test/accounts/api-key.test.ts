import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { crc32 } from 'node:zlib'
import { createApiKey, hashApiKey, isApiKeyShaped, keyPrefix } from '../../src/accounts/api-key.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

describe('an API key', () => {
  it('an API key has its environment, 43 random characters and the checksum of what precedes', () => {
    for (const environment of ['live', 'test'] as const) {
      const key = createApiKey(environment)
      assert.match(key, new RegExp(`^agw_${environment}_[0-9A-Za-z]{49}$`))
      assert.ok(key.startsWith(keyPrefix(environment)))
      const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + ALPHABET.indexOf(digit), 0)
      assert.equal(value, crc32(key.slice(0, -6)))
      assert.ok(isApiKeyShaped(key))
    }
  })

  it('an API key uses every character of its alphabet about equally often', () => {
    const counts = new Map<string, number>()
    for (let round = 0; round < 2_000; round += 1) {
      for (const digit of createApiKey('live').slice(9, 52)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
    }
    const expected = (2_000 * 43) / 62
    const chiSquared = [...ALPHABET].reduce(
      (sum, digit) => sum + ((counts.get(digit) ?? 0) - expected) ** 2 / expected,
      0,
    )
    // Chi-squared with 61 degrees of freedom: one value in a million is above 130, and `byte % 62`,
    // which favours some digits, gives over 400.
    assert.ok(chiSquared < 140, `chi squared ${chiSquared}`)
  })

  it('an API key is distinguished from every near miss without a look-up', () => {
    const key = createApiKey('live')
    for (let index = 0; index < key.length; index += 1) {
      for (const character of ['0', 'Z', '_', ' ', '\u0131']) {
        if (key[index] === character) continue
        assert.ok(!isApiKeyShaped(key.slice(0, index) + character + key.slice(index + 1)), `changed at ${index}`)
      }
      assert.ok(!isApiKeyShaped(key.slice(0, index) + key.slice(index + 1)), `without ${index}`)
    }
    const swapped = key.replace('agw_live_', 'agw_test_')
    const bad = [
      '',
      'agw_live_',
      `${key}\n`,
      ` ${key}`,
      key.toUpperCase(),
      key.repeat(2),
      swapped,
      `${key}0`,
      'agw_root_x',
    ]
    for (const text of bad) assert.ok(!isApiKeyShaped(text), JSON.stringify(text))
  })

  it('an API key is stored under a pepper, without which its hash cannot be made', () => {
    const key = createApiKey('test')
    const pepper = randomBytes(32)
    assert.equal(hashApiKey(pepper, key).length, 32)
    assert.deepEqual(hashApiKey(pepper, key), hashApiKey(pepper, key))
    assert.notDeepEqual(hashApiKey(pepper, key), hashApiKey(randomBytes(32), key))
  })
})
