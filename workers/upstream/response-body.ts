import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import type { MemoryShare } from './answer-memory.ts'

/** Bytes of a body that are read without asking for memory. */
export const UNCOUNTED_BYTES_MAX = 64 * 1024

/** What each byte of a body takes while it is read: its parts, and the whole made of them. */
const READ_COST = 2

export class BodyTooLargeError extends Error {
  readonly code = 'BODY_TOO_LARGE'
}

class BodyUnreadableError extends Error {
  readonly code = 'BODY_UNREADABLE'
}

export const ACCEPT_ENCODING = 'gzip, deflate, br'

const DECODERS: Record<string, (bytes: Buffer) => Transform> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // Some servers leave out the zlib wrapper (RFC 9110, 8.4.1.2), whose first byte says method 8.
  deflate: (bytes) => (((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
}

export interface BodyBounds {
  bytesMax: number
  memory?: MemoryShare | undefined
  /** Ends a wait for memory. */
  signal: AbortSignal
}

/** Collects the parts of a body, within its bounds. */
export class BodyReader {
  readonly #bounds: BodyBounds
  readonly #chunks: Buffer[] = []
  #length = 0

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds
  }

  /** @returns what is to be awaited before more is read. @throws BodyTooLargeError */
  add(chunk: Buffer): Promise<void> | undefined {
    const { bytesMax, memory, signal } = this.#bounds
    this.#length += chunk.length
    if (this.#length > bytesMax) throw new BodyTooLargeError(`body exceeds ${bytesMax} bytes`)
    this.#chunks.push(chunk)
    return this.#length > UNCOUNTED_BYTES_MAX ? memory?.take(chunk.length * READ_COST, signal) : undefined
  }

  whole(): Buffer {
    const [first] = this.#chunks
    return first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#length)
  }
}

/**
 * A small body may unpack to a huge one: decoded bytes have the same bounds as those read.
 * @throws BodyTooLargeError, BodyUnreadableError, the signal's reason
 */
export async function decodeBody(bytes: Buffer, encoding: string, bounds: BodyBounds): Promise<Buffer> {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity' || bytes.length === 0) return bytes
  const createDecoder = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined
  if (!createDecoder) throw new BodyUnreadableError('body has an encoding that was not requested')
  const body = new BodyReader(bounds)
  try {
    for await (const chunk of createDecoder(bytes).end(bytes)) await body.add(chunk)
  } catch (cause) {
    if (bounds.signal.aborted || cause instanceof BodyTooLargeError) throw cause
    throw new BodyUnreadableError('body does not decode', { cause })
  }
  return body.whole()
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
