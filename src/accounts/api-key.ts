import { createHmac, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Environment } from '../db/schema.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 43
const CHECKSUM_LENGTH = 6
const FORMAT = /^agw_(live|test)_[0-9A-Za-z]{49}$/

/** The fixed leading part of a key of this environment. */
export function keyPrefix(environment: Environment): string {
  return `agw_${environment}_`
}

/**
 * A new service API key: the prefix, 43 base62 characters (256 random bits), and 6 base62
 * characters with the CRC-32 of everything before them.
 */
export function createApiKey(environment: Environment): string {
  const start = keyPrefix(environment) + randomBase62(RANDOM_LENGTH)
  return start + checksum(start)
}

/**
 * Whether a text has the form and checksum of a key. Most texts that are not keys fail here, so
 * that they cost no look-up.
 */
export function isApiKeyShaped(text: string): boolean {
  if (!FORMAT.test(text)) return false
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/**
 * Whether a text holds a key of this service, or a part of it. Such a text is never sent to an
 * upstream, because the upstream could then make calls in the caller's name.
 */
export function holdsApiKey(text: string): boolean {
  return /agw_(live|test)_/i.test(text)
}

/** Why such a text is refused as a key for an upstream. */
export const OWN_KEY_REFUSED = 'This is a key of this service, which is never sent to an upstream.'

/**
 * The form in which a key is stored: its HMAC-SHA-256 under the pepper. A key has 256 random bits,
 * so a slow hash would add nothing.
 */
export function hashApiKey(pepper: Buffer, key: string): Buffer {
  return createHmac('sha256', pepper).update(key).digest()
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let index = 0; index < CHECKSUM_LENGTH; index += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(64)) {
      // 248 is the largest multiple of 62 in a byte. Bytes from 248 up would make the first digits
      // likelier than the others.
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62)
    }
  }
  return text
}
