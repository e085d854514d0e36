import { PassThrough } from 'node:stream'
import { bufferedBytes } from '../server/holding.ts'

/**
 * Writes the answer to a batch. Each line is given in parts. The last part is the body of the
 * call's answer, if the answer has a body.
 */
export interface BatchAnswer {
  type: string
  stream: PassThrough
  /** Bytes that the caller has not read yet. */
  readonly bytes: number
  write: (index: number, line: Buffer[]) => void
  end: (totals: object) => void
}

/**
 * Lines above this size are written part by part. Identical calls share one body; if the parts were
 * joined, each call would hold a copy while the caller does not read.
 */
const JOINED_BYTES_MAX = 16 * 1_024

const LINE_END = Buffer.from('\n')

/** Writes one line for each call, when the call ends. */
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

/** Writes one object when all calls have ended. */
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
