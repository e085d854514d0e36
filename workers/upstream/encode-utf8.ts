import { transcode } from 'node:buffer'

/** `Buffer.from` encodes shorter texts as quickly. Characters, with wide characters and without. */
const WIDE_LENGTH_MIN = 2_048
const NARROW_LENGTH_MIN = 8_192

/** Longer texts are left to `Buffer.from`, characters: the scratch space stays. */
const LENGTH_MAX = 2 * 1_024 * 1_024

/**
 * V8 keeps a text without them in one byte a character, and answers this test without reading it.
 */
const WIDE = /[\u0100-\uffff]/

let scratch = Buffer.alloc(0)

/**
 * The bytes of `Buffer.from(text)`, which first measures a text, and both one character at a time
 * if any character is wide: it takes five times as long.
 *
 * @throws Error for lone surrogates, which JSON.stringify never makes
 */
export function encodeUtf8(text: string): Buffer {
  if (text.length < WIDE_LENGTH_MIN || text.length > LENGTH_MAX) return Buffer.from(text)
  const isWide = WIDE.test(text)
  if (!isWide && text.length < NARROW_LENGTH_MIN) return Buffer.from(text)
  // Also enough for UTF-8 without wide characters.
  const bytes = 2 * text.length
  if (scratch.length < bytes) scratch = Buffer.allocUnsafeSlow(bytes)
  const written = scratch.subarray(0, scratch.write(text, 0, bytes, isWide ? 'utf16le' : 'utf8'))
  return isWide ? transcode(written, 'utf16le', 'utf8') : Buffer.from(written)
}
