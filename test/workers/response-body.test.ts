import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { decodeBody } from '../../workers/upstream/response-body.ts'

const TEXT = Buffer.from(JSON.stringify({ items: Array.from({ length: 500 }, (_, index) => ({ index })) }))
const BYTES_MAX = 1_000_000

for (const [what, encoding, bytes] of [
  ['gzip', 'gzip', gzipSync(TEXT)],
  ['brotli', 'br', brotliCompressSync(TEXT)],
  ['deflate', 'deflate', deflateSync(TEXT)],
  ['deflate without its zlib wrapper', 'deflate', deflateRawSync(TEXT)],
] as const) {
  test(`a body in ${what} is decoded, up to its bound and no further`, async () => {
    assert.deepEqual(await decodeBody(bytes, encoding, BYTES_MAX), TEXT)
    await assert.rejects(decodeBody(bytes, encoding, TEXT.length - 1), { code: 'BODY_TOO_LARGE' })
    await assert.rejects(decodeBody(bytes.subarray(0, bytes.length - 9), encoding, BYTES_MAX), {
      code: 'BODY_UNREADABLE',
    })
  })
}
