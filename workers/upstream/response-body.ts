import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import type { MemoryShare } from './answer-memory.ts'

/** Bytes of a body that are read without asking for memory. */
export const UNCOUNTED_BYTES_MAX = 64 * 1024

/** What each byte of a body takes while it is read: its parts, and the whole made of them. */
const READ_COST = 2

/**
 * The least that a part of a body counts as, bytes: a chunk of one byte takes a microsecond, and
 * memory of its own. Fails closed: a body in smaller parts is too large sooner.
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
   * @returns what is to be awaited before more is read.
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

/** Codings of one body; each takes time and memory of its own. */
const CODINGS_MAX = 4

/**
 * Names of no coding: some servers write the charset, or that there is no coding, in the place of a
 * coding.
 */
const NO_CODINGS = new Set(['', 'identity', 'none', 'utf-8', 'utf8'])

/**
 * Undoes the codings of a body, which are listed in the order in which the server applied them (RFC
 * 9110, 8.4). A small body may unpack to a huge body: the bytes of every step have the same bounds
 * as the bytes read.
 *
 * @throws BodyTooLargeError, BodyUnreadableError, the signal's reason
 */
export async function decodeBody(bytes: Buffer, encoding: string, bounds: BodyBounds): Promise<Buffer> {
  if (bytes.length === 0) return bytes
  const names = encoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !NO_CODINGS.has(name))
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

/** Stateless, and costlier to make than a small body is to decode. */
const DECODER = new TextDecoder('utf-8', { fatal: true })

/** A byte order mark is ignored; undefined if it is no JSON in UTF-8. */
export function parseJson(bytes: Buffer): { text: string; value: unknown } | undefined {
  try {
    const text = DECODER.decode(bytes)
    return { text, value: JSON.parse(text) }
  } catch {
    // Status and upstream decide what that means.
    return undefined
  }
}
