import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Secret } from '../config.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * A secret as it is stored: nonce, tag and ciphertext, with the id of the encryption key that
 * sealed it.
 */
export interface Sealed {
  secretId: string
  bytes: Buffer
}

/**
 * Seals a text with the current encryption key (AES-256-GCM, a random nonce each time). `record`
 * says whose the text is: for another record, `open` refuses it.
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
 * Opens what `seal` made. Knows the current encryption key and the earlier keys.
 *
 * @throws Error if the encryption key is no longer configured, or the bytes belong to another
 *   record
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

/** Derives 256 bits for this use alone from a secret of any length (HKDF, RFC 5869). */
function cipherKey({ bytes }: Secret): Buffer {
  return Buffer.from(hkdfSync('sha256', bytes, '', 'stored secrets', 32))
}
