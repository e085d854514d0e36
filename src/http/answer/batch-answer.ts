import { PassThrough } from 'node:stream'
import { bufferedBytes } from '../server/holding.ts'

/**
 * How a batch is answered. A line comes in parts, of which the last is the body of the call's
 * answer, if it has a body.
 */
export interface BatchAnswer {
  type: string
  stream: PassThrough
  /** Bytes that wait to be read. */
  readonly bytes: number
  write: (index: number, line: Buffer[]) => void
  end: (totals: object) => void
}

/**
 * A line of more bytes is written in its parts: calls that equal each other share one body, which
 * would be held once for each of them while the caller does not read.
 */
const JOINED_BYTES_MAX = 16 * 1_024

const LINE_END = Buffer.from('\n')

/** One line for each call, as it ends. */
export class BatchLines implements BatchAnswer {
  readonly type = 'application/x-ndjson; charset=utf-8'
  readonly stream = new PassThrough()

  get bytes(): number {
    return bufferedBytes(this.stream)
  }

  write(_index: number, line: Buffer[]): void {
    writeParts(this.stream, [...line, LINE_END])
  }

  end(totals: object): void {
    if (this.stream.writable) this.stream.end(`${JSON.stringify(totals)}\n`)
  }
}

/** One object, when all have ended. */
export class BatchObject implements BatchAnswer {
  readonly type = 'application/json; charset=utf-8'
  readonly stream = new PassThrough()
  readonly #lines: Buffer[][]
  #lineBytes = 0

  constructor(count: number) {
    this.#lines = new Array(count)
  }

  get bytes(): number {
    return this.#lineBytes + bufferedBytes(this.stream)
  }

  write(index: number, line: Buffer[]): void {
    this.#lines[index] = line
    this.#lineBytes += bytesOf(line)
  }

  end(totals: object): void {
    this.#lineBytes = 0
    for (const [index, line] of this.#lines.entries()) {
      writeParts(this.stream, [Buffer.from(index === 0 ? '{"results":[' : ','), ...line])
    }
    if (this.stream.writable) this.stream.end(`],${JSON.stringify(totals).slice(1)}`)
  }
}

function writeParts(stream: PassThrough, parts: Buffer[]): void {
  if (!stream.writable) return
  const bytes = bytesOf(parts)
  if (bytes <= JOINED_BYTES_MAX) stream.write(Buffer.concat(parts, bytes))
  else for (const part of parts) stream.write(part)
}

function bytesOf(parts: Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0)
}
