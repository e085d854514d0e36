import type { IncomingMessage } from 'node:http'
import { bringsBody } from '../request/body-limits.ts'
import type { Holding } from './holding.ts'

/**
 * Most parts (chunks or packets) in which a body may arrive. Each part takes the processor two
 * microseconds.
 */
const PARTS_MAX = 2_000

/** Memory of a part besides its bytes, until the body is complete. */
const PART_BYTES = 256

/**
 * Most bytes of a chunked body that are discarded after its request was answered. Chunks that
 * nobody reads are not counted.
 */
const DISCARDED_BYTES_MAX = 64 * 1_024

/** The code of the `clientError` for a body with too many parts. */
export const TOO_MANY_PARTS = 'TOO_MANY_PARTS'

/** Limits what the newest body of a connection costs besides its bytes. */
export class BodyParts {
  #parts = 0
  #discardedBytes = 0

  /** Counts the parts of a request's body while a handler reads it. */
  begin(request: IncomingMessage, holding: Holding): void {
    if (!bringsBody(request.headers)) return
    this.#parts = 0
    this.#discardedBytes = 0
    const push = request.push.bind(request)
    request.push = (part, encoding) => {
      this.#parts += 1
      holding.add(PART_BYTES)
      return push(part, encoding)
    }
  }

  /** Counts discarded bytes of a body whose request was answered. */
  discard({ headers }: IncomingMessage, bytes: number): void {
    if (headers['transfer-encoding'] !== undefined) this.#discardedBytes += bytes
  }

  /** Whether the rest of the body must be refused. */
  get isTooMany(): boolean {
    return this.#parts > PARTS_MAX || this.#discardedBytes > DISCARDED_BYTES_MAX
  }
}
