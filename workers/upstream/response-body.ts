import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'

export class BodyTooLargeError extends Error {
  readonly code = 'BODY_TOO_LARGE'
}

class BodyUnreadableError extends Error {
  readonly code = 'BODY_UNREADABLE'
}

export const ACCEPT_ENCODING = 'gzip, deflate, br'

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const unwrap: Decode = promisify(inflate)
const unwrapRaw: Decode = promisify(inflateRaw)

const DECODERS: Record<string, Decode> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  // Some servers leave out the zlib wrapper (RFC 9110, 8.4.1.2), whose first byte says method 8.
  deflate: (bytes, options) => (((bytes[0] ?? 0) & 0x0f) === 8 ? unwrap : unwrapRaw)(bytes, options),
  br: promisify(brotliDecompress),
}

/** Bounds decoded bytes: a small body must not unpack to a huge one. @throws BodyTooLargeError, BodyUnreadableError */
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

/** Stateless, and costlier to make than a small body is to decode. */
const DECODER = new TextDecoder('utf-8', { fatal: true })

/** A byte order mark is ignored; undefined when it is no JSON in UTF-8. */
export function parseJson(bytes: Buffer): { text: string; value: unknown } | undefined {
  try {
    const text = DECODER.decode(bytes)
    return { text, value: JSON.parse(text) }
  } catch {
    // Status and upstream decide what that means.
    return undefined
  }
}
