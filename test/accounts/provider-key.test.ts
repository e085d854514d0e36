import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { keyScope, maskKey } from '../../src/accounts/provider-key.ts'
import { open, seal } from '../../src/accounts/secret-box.ts'

const secret = (id: string) => ({ id, bytes: randomBytes(32) })

describe('a sealed secret', () => {
  const current = secret('current')
  const earlier = secret('earlier')

  it('a sealed secret can be opened only for its own record, and sealing it twice gives two texts', () => {
    const first = seal([current], 'record-1', 'the key')
    const second = seal([current], 'record-1', 'the key')
    assert.notDeepEqual(first.bytes, second.bytes)
    assert.equal(open([current], 'record-1', first), 'the key')
    assert.throws(() => open([current], 'record-2', first))
  })

  it('a sealed secret that was altered in any byte is not opened', () => {
    const sealed = seal([current], 'record', 'the key')
    for (let index = 0; index < sealed.bytes.length; index += 1) {
      const bytes = Buffer.from(sealed.bytes)
      bytes.writeUInt8(bytes.readUInt8(index) ^ 1, index)
      assert.throws(() => open([current], 'record', { ...sealed, bytes }), `byte ${index}`)
    }
    assert.throws(() => open([current], 'record', { ...sealed, bytes: sealed.bytes.subarray(0, 20) }))
  })

  it('a sealed secret of an earlier encryption key is opened while that key is listed', () => {
    const sealed = seal([earlier], 'record', 'the key')
    assert.equal(open([current, earlier], 'record', sealed), 'the key')
    assert.throws(() => open([current], 'record', sealed), /not among ENCRYPTION_KEY/)
  })
})

describe('a provider key', () => {
  it('a provider key shows its last four characters from twelve on, behind a mask of one length', () => {
    assert.equal(maskKey('x'), '********')
    assert.equal(maskKey('abcdefghijk'), '********')
    assert.equal(maskKey('abcdefghijkl'), '********ijkl')
    assert.equal(maskKey(`${'x'.repeat(500)}last`), '********last')
  })

  it('a provider key has the same cap whoever saves it, and no other key or upstream has this cap', () => {
    const pepper = randomBytes(32)
    const scope = keyScope(pepper, 'news', 'key')
    assert.equal(keyScope(pepper, 'news', 'key'), scope)
    assert.notEqual(keyScope(pepper, 'news', 'key2'), scope)
    assert.notEqual(keyScope(pepper, 'weather', 'key'), scope)
    assert.notEqual(keyScope(randomBytes(32), 'news', 'key'), scope)
    assert.ok(!scope.includes('|') && !scope.includes(':'))
  })
})
