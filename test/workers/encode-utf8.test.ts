import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeUtf8 } from '../../workers/upstream/outcome.ts'

const KINDS = {
  ASCII: 'plain "text"\n',
  'Latin-1': 'é über ÿ ',
  'typographic quotes': 'It is “true” that \\"ducks\\" say über. ',
  'Chinese and Japanese': '日本語のテキスト',
  'surrogate pairs': 'a 🦆 and 𝒳',
}

test('text of any length and kind is encoded to the same bytes as by Buffer.from', () => {
  // Lengths around the point at which the method changes, longer and then shorter again, so that
  // the buffer is used again.
  const lengths = [0, 1, 2_047, 2_048, 8_191, 8_192, 60_000, 3_000, 1_200_000, 2_500_000, 10_000]
  for (const [kind, words] of Object.entries(KINDS)) {
    for (const length of lengths) {
      const text = JSON.stringify(words.repeat(Math.ceil(length / words.length)))
      assert.ok(encodeUtf8(text).equals(Buffer.from(text)), `${length} characters of ${kind}`)
    }
    const late = JSON.stringify(`${'x'.repeat(20_000)}${words}`)
    assert.ok(encodeUtf8(late).equals(Buffer.from(late)), `${kind} at the end`)
  }
})

test('the bytes of a text do not change when another text is encoded', () => {
  const [first, second] = ['é', '日'].map((character) => character.repeat(20_000))
  const encoded = encodeUtf8(first ?? '')
  encodeUtf8(second ?? '')
  encodeUtf8('x'.repeat(30_000))
  assert.equal(encoded.toString(), first)
})

test('lone surrogates are encoded to the same bytes as the escapes that JSON.stringify writes', () => {
  const text = JSON.stringify({ text: `\ud800${'日'.repeat(3_000)}` })
  assert.equal(encodeUtf8(text).toString(), text)
  assert.throws(() => encodeUtf8(`\ud800${'日'.repeat(3_000)}`))
})
