import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Secret } from '../config.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * A secret as it is stored: nonce, tag and ciphertext, and the id of the encryption key that sealed
 * it.
 */
export interface Sealed {
  secretId: string
  bytes: Buffer
}

/**
 * Seals a text with the current encryption key (AES-256-GCM, a random nonce each time). `record`
 * says whose it is: put into another record it cannot be opened.
 */
export function seal(secrets: Secret[], record: string, text: string): Sealed {
  const [current] = secrets
  if (!current) throw new Error('no encryption key')
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', cipherKey(current), nonce).setAAD(Buffer.from(record))
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return { secretId: current.id, bytes: Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]) }
}

/**
 * Opens what `seal` made, with the current encryption key or an earlier key.
 *
 * @throws Error if the key is not known any more, or the bytes are not of this record
 */
export function open(secrets: Secret[], record: string, { secretId, bytes }: Sealed): string {
  const secret = secrets.find(({ id }) => id === secretId)
  if (!secret) throw new Error('the encryption key of this record is not among ENCRYPTION_KEY')
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', cipherKey(secret), nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(record))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}

/** 256 bits of the secret, whatever its length, for this use alone (HKDF, RFC 5869). */
function cipherKey({ bytes }: Secret): Buffer {
  return Buffer.from(hkdfSync('sha256', bytes, '', 'stored secrets', 32))
}
