import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { AnswerMemory, MemoryShare } from '../../workers/upstream/answer-memory.ts'
import { BodyReader, decodeBody, parseJson } from '../../workers/upstream/response-body.ts'

const TEXT = Buffer.from(JSON.stringify({ items: Array.from({ length: 500 }, (_, index) => ({ index })) }))
const BYTES_MAX = 1_000_000
const { signal } = new AbortController()

for (const [what, encoding, bytes] of [
  ['gzip', 'gzip', gzipSync(TEXT)],
  ['brotli', 'br', brotliCompressSync(TEXT)],
  ['deflate', 'deflate', deflateSync(TEXT)],
  ['deflate without its zlib wrapper', 'deflate', deflateRawSync(TEXT)],
] as const) {
  test(`a body in ${what} is decoded, up to its bound and no further`, async () => {
    assert.deepEqual(await decodeBody(bytes, encoding, { bytesMax: BYTES_MAX, signal }), TEXT)
    await assert.rejects(decodeBody(bytes, encoding, { bytesMax: TEXT.length - 1, signal }), { code: 'BODY_TOO_LARGE' })
    const cutShort = decodeBody(bytes.subarray(0, bytes.length - 9), encoding, { bytesMax: BYTES_MAX, signal })
    await assert.rejects(cutShort, { code: 'BODY_UNREADABLE' })
  })
}

test('an answer of an own API keeps the digits of numbers that a double cannot hold, and writes others as ever', () => {
  const text =
    '{"id":9223372036854775807,"ids":[ -9223372036854775808 ],"n":0.1234567890123456789,"s":"12345678901234567890"}'
  const written = (keepsDigits: boolean) => JSON.stringify(parseJson(Buffer.from(text), keepsDigits)?.value)
  assert.equal(written(true), text.replaceAll(' ', ''))
  assert.match(written(false), /^\{"id":9223372036854776000,.+"n":0\.12345678901234568,/)
  const same = parseJson(Buffer.from('[1.50,0.30000000000000004,52.520000000000003]'), true)?.value
  assert.equal(JSON.stringify(same), '[1.5,0.30000000000000004,52.52]')
  assert.deepEqual(parseJson(Buffer.from('{"id":1234567890123456}'), true)?.value, { id: 1_234_567_890_123_456 })
})

const inARow: [encoding: string, bytes: Buffer][] = [
  ['identity, gzip', gzipSync(TEXT)],
  ['gzip, identity', gzipSync(TEXT)],
  ['gzip,', gzipSync(TEXT)],
  ['GZIP , BR', brotliCompressSync(gzipSync(TEXT))],
  ['br, gzip', gzipSync(brotliCompressSync(TEXT))],
  ['deflate, gzip', gzipSync(deflateRawSync(TEXT))],
  ['gzip, gzip', gzipSync(gzipSync(TEXT))],
  ['gzip, br, deflate, x-gzip', gzipSync(deflateSync(brotliCompressSync(gzipSync(TEXT))))],
  ['identity, identity, identity, identity, identity', TEXT],
  ['none', TEXT],
  ['UTF-8', TEXT],
  ['utf8, gzip', gzipSync(TEXT)],
  [' ', TEXT],
]
for (const [encoding, bytes] of inARow) {
  test(`a body in ${encoding} is decoded, the last coding first, and no step passes its bound`, async () => {
    assert.deepEqual(await decodeBody(bytes, encoding, { bytesMax: BYTES_MAX, signal }), TEXT)
    if (bytes === TEXT) return
    await assert.rejects(decodeBody(bytes, encoding, { bytesMax: TEXT.length - 1, signal }), { code: 'BODY_TOO_LARGE' })
  })
}

test('a body whose inner coding is larger than its bound is refused at that step', async () => {
  const huge = gzipSync(gzipSync(Buffer.alloc(50_000_000, ' '), { level: 0 }))
  await assert.rejects(decodeBody(huge, 'gzip, gzip', { bytesMax: BYTES_MAX, signal }), { code: 'BODY_TOO_LARGE' })
})

for (const encoding of [
  'zstd',
  'gzip, zstd',
  'zstd, gzip',
  'gzip, gzip, gzip, gzip, gzip',
  'constructor',
  'gzip gzip',
]) {
  test(`a body in ${encoding} is not decoded`, async () => {
    const decoding = decodeBody(gzipSync(TEXT), encoding, { bytesMax: BYTES_MAX, signal })
    await assert.rejects(decoding, { code: 'BODY_UNREADABLE' })
  })
}

test('a small body that unpacks to a large one waits for memory before it is decoded further', async () => {
  const large = Buffer.alloc(1_000_000, ' ')
  const memory = new AnswerMemory(0)
  const holding = new MemoryShare(memory)
  holding.take(1, signal)
  let askedFor = 0
  const waiting = Promise.withResolvers<void>()
  const share = new MemoryShare(memory)
  const take: MemoryShare['take'] = (bytes, stop) => {
    askedFor += bytes
    waiting.resolve()
    return share.take(bytes, stop)
  }
  const decoding = decodeBody(gzipSync(large), 'gzip', { bytesMax: BYTES_MAX, memory: { take }, signal })
  await waiting.promise
  // Longer than the whole answer would take.
  await decodeBody(gzipSync(large), 'gzip', { bytesMax: BYTES_MAX, signal })
  assert.ok(askedFor < 100_000, `${askedFor} bytes`)
  holding.giveBack()
  assert.deepEqual(await decoding, large)
  assert.ok(askedFor > large.length)
})

test('a call that ends while its body is decoded does not fail with a body that does not decode', async () => {
  const left = new AbortController()
  const memory = {
    take: () => {
      left.abort('caller left')
      return Promise.reject('caller left')
    },
  }
  const bounds = { bytesMax: BYTES_MAX, memory, signal: left.signal }
  await assert.rejects(
    decodeBody(gzipSync(Buffer.alloc(100_000)), 'gzip', bounds),
    (reason) => reason === 'caller left',
  )
})

test('each part of a body counts as 64 bytes at least, for its bound and for its memory', () => {
  let taken = 0
  const take: MemoryShare['take'] = (bytes) => {
    taken += bytes
    return undefined
  }
  const body = new BodyReader({
    bytesMax: BYTES_MAX,
    memory: { take },
    signal,
  })
  const part = Buffer.from(' ')
  for (let count = 0; count < 15_000; count += 1) body.add(part)
  assert.equal(body.whole().length, 15_000)
  assert.ok(taken > 15_000 * 64, `${taken} bytes`)
  const addMore = () => {
    for (let count = 0; count < 1_000; count += 1) body.add(part)
  }
  assert.throws(addMore, { code: 'BODY_TOO_LARGE' })
})
