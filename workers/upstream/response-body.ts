import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { parseKeepingDigits } from '../../src/catalog/long-numbers.ts'
import { contentCodings } from '../../src/http/content-codings.ts'
import type { MemoryShare } from './answer-memory.ts'

/** Bytes of a body that are read without a request for memory. */
export const UNCOUNTED_BYTES_MAX = 64 * 1024

/** Bytes of memory for each byte of a body while it is read: its parts, and the whole body. */
const READ_COST = 2

/**
 * The least number of bytes as which a part of a body counts. A chunk of one byte takes a
 * microsecond and memory of its own. Fails closed: a body in smaller parts reaches the limit
 * sooner.
 */
const PART_BYTES_MIN = 64

class BodyTooLargeError extends Error {
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
  memory?: Pick<MemoryShare, 'take'> | undefined
  /** Ends a wait for memory. */
  signal: AbortSignal
}

/** Collects the parts of a body, within its bounds. */
export class BodyReader {
  readonly #bounds: BodyBounds
  readonly #chunks: Buffer[] = []
  #length = 0
  #counted = 0

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds
  }

  /**
   * @returns a promise to await before more is read; undefined if there is none
   * @throws BodyTooLargeError
   */
  add(chunk: Buffer): Promise<void> | undefined {
    const { bytesMax, memory, signal } = this.#bounds
    const counted = Math.max(chunk.length, PART_BYTES_MIN)
    this.#length += chunk.length
    this.#counted += counted
    if (this.#length > bytesMax || this.#counted > Math.max(bytesMax, UNCOUNTED_BYTES_MAX))
      throw new BodyTooLargeError(`body exceeds ${bytesMax} bytes`)
    this.#chunks.push(chunk)
    return this.#counted > UNCOUNTED_BYTES_MAX ? memory?.take(counted * READ_COST, signal) : undefined
  }

  whole(): Buffer {
    const [first] = this.#chunks
    return first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#length)
  }
}

/** Most codings of one body. Each takes time and memory. */
const CODINGS_MAX = 4

/**
 * Decodes a body. Its codings are listed in the order in which the server applied them (RFC 9110,
 * 8.4). A small body may decode to a huge one, so the result of every step has the same limits as
 * the bytes read.
 *
 * @throws BodyTooLargeError, BodyUnreadableError, the signal's reason
 */
export async function decodeBody(bytes: Buffer, encoding: string, bounds: BodyBounds): Promise<Buffer> {
  if (bytes.length === 0) return bytes
  const names = contentCodings(encoding)
  if (names.length > CODINGS_MAX) throw new BodyUnreadableError('body has too many encodings')
  if (!names.every((name) => Object.hasOwn(DECODERS, name)))
    throw new BodyUnreadableError('body has an encoding that was not requested')
  let decoded = bytes
  for (const name of names.reverse()) decoded = await undoCoding(decoded, name, bounds)
  return decoded
}

async function undoCoding(bytes: Buffer, name: string, bounds: BodyBounds): Promise<Buffer> {
  const decoder = DECODERS[name]?.(bytes)
  if (decoder === undefined || bytes.length === 0) return bytes
  const body = new BodyReader(bounds)
  try {
    for await (const chunk of decoder.end(bytes)) await body.add(chunk)
  } catch (cause) {
    if (bounds.signal.aborted || cause instanceof BodyTooLargeError) throw cause
    throw new BodyUnreadableError('body does not decode', { cause })
  }
  return body.whole()
}

/** A shared decoder. It has no state, and making one takes longer than decoding a small body. */
const DECODER = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses JSON in UTF-8 and ignores a byte order mark; undefined for anything else.
 *
 * @param keepsDigits whether whole numbers with more digits than a double can hold stay as they
 *   are, for `JSON.stringify`
 */
export function parseJson(bytes: Buffer, keepsDigits = false): { text: string; value: unknown } | undefined {
  try {
    const text = DECODER.decode(bytes)
    return { text, value: keepsDigits ? parseKeepingDigits(text) : JSON.parse(text) }
  } catch {
    // The status and the upstream's rules decide what that means.
    return undefined
  }
}
