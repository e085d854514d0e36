import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

/** The decoded body is larger than its bound. */
export class BodyTooLargeError extends Error {
  readonly code = 'BODY_TOO_LARGE'
}

/** The body is not what its headers say. */
class BodyUnreadableError extends Error {
  readonly code = 'BODY_UNREADABLE'
}

/** What we ask upstreams to encode bodies in. */
export const ACCEPT_ENCODING = 'gzip, deflate, br'

const DECODERS: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/**
 * Decodes a body, counting decoded bytes, so that a small one that unpacks to a huge one is never held in memory.
 *
 * @throws BodyTooLargeError or BodyUnreadableError
 */
export async function decodeBody(bytes: Buffer, encoding: string | undefined, bytesMax: number): Promise<Buffer> {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity' || bytes.length === 0) return bytes
  const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined
  if (!decode) throw new BodyUnreadableError('body has an encoding that was not requested')
  try {
    return await decode(bytes, { maxOutputLength: bytesMax })
  } catch (cause) {
    const isTooLarge = cause instanceof Error && Reflect.get(cause, 'code') === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge
      ? new BodyTooLargeError(`body exceeds ${bytesMax} bytes`)
      : new BodyUnreadableError('body does not decode', { cause })
  }
}

/** One for all bodies: making one costs more than decoding a small body. It keeps nothing between them. */
const DECODER = new TextDecoder('utf-8', { fatal: true })

/** The JSON of a body in UTF-8, a byte order mark ignored; undefined when it is none. */
export function parseJson(bytes: Buffer): { text: string; value: unknown } | undefined {
  try {
    const text = DECODER.decode(bytes)
    return { text, value: JSON.parse(text) }
  } catch {
    // What it means that a body is not JSON depends on its status and upstream: the caller judges.
    return undefined
  }
}
