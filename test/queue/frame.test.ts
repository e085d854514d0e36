import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { decodeFrame, encodeFrame } from '../../src/queue/frame.ts'

describe('a frame', () => {
  it('a frame gives back any head and body byte for byte', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.uint8Array({ maxLength: 5_000 }), (head, bytes) => {
        const decoded = decodeFrame(encodeFrame(head, Buffer.from(bytes)))
        assert.deepEqual(decoded.head, JSON.parse(JSON.stringify(head)))
        assert.deepEqual(decoded.body, Buffer.from(bytes))
      }),
    )
  })

  it('a frame carries texts of several bytes a character, and an empty body', () => {
    const head = { id: 'call_1', message: '\u00e9\u{1f511}\u4e2d' }
    const { head: read, body } = decodeFrame(encodeFrame(head, Buffer.alloc(0)))
    assert.deepEqual(read, head)
    assert.equal(body.length, 0)
  })

  it('a frame that is cut or foreign is refused', () => {
    const frame = encodeFrame({ id: 'call_1' }, Buffer.from('{}'))
    for (const bytes of [Buffer.alloc(0), frame.subarray(0, 3), frame.subarray(0, 8), Buffer.from('{"id":"call_1"}')]) {
      assert.throws(() => decodeFrame(bytes))
    }
  })
})
