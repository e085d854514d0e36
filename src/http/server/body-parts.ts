import type { IncomingMessage } from 'node:http'
import { bringsBody } from '../request/body-limits.ts'
import type { Holding } from './holding.ts'

/**
 * Parts in which a body may arrive: its chunks, or its packets. Each part takes the processor two
 * microseconds.
 */
const PARTS_MAX = 2_000

/** Memory that a part takes besides its bytes until the body is complete. */
const PART_BYTES = 256

/**
 * Bytes of a body in chunks that are thrown away behind its answer: nobody counts chunks that
 * nobody reads.
 */
const DISCARDED_BYTES_MAX = 64 * 1_024

/** The code of the `clientError` of a body that comes in too many parts. */
export const TOO_MANY_PARTS = 'TOO_MANY_PARTS'

/** Bounds what the newest body of a connection costs besides its bytes. */
export class BodyParts {
  #parts = 0
  #discardedBytes = 0

  /** Counts the parts of a request's body while somebody reads it. */
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

  /** Counts bytes of a body that is thrown away behind its answer. */
  discard({ headers }: IncomingMessage, bytes: number): void {
    if (headers['transfer-encoding'] !== undefined) this.#discardedBytes += bytes
  }

  /** Whether the rest of the body is to be refused. */
  get isTooMany(): boolean {
    return this.#parts > PARTS_MAX || this.#discardedBytes > DISCARDED_BYTES_MAX
  }
}
