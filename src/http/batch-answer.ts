import { PassThrough } from 'node:stream'

/** How a batch is answered. A line comes in parts, of which the last is the body of the call's answer, where it has one. */
export interface BatchAnswer {
  type: string
  stream: PassThrough
  write: (index: number, line: Buffer[]) => void
  end: (totals: object) => void
}

/**
 * A line of more bytes is written in its parts: calls that equal each other share one body, which would be held once for
 * each of them while the caller does not read.
 */
const JOINED_BYTES_MAX = 16 * 1_024

const LINE_END = Buffer.from('\n')

/** One line for each call, as it ends. */
export class BatchLines implements BatchAnswer {
  readonly type = 'application/x-ndjson; charset=utf-8'
  readonly stream = new PassThrough()

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

  constructor(count: number) {
    this.#lines = new Array(count)
  }

  write(index: number, line: Buffer[]): void {
    this.#lines[index] = line
  }

  end(totals: object): void {
    for (const [index, line] of this.#lines.entries()) {
      writeParts(this.stream, [Buffer.from(index === 0 ? '{"results":[' : ','), ...line])
    }
    if (this.stream.writable) this.stream.end(`],${JSON.stringify(totals).slice(1)}`)
  }
}

function writeParts(stream: PassThrough, parts: Buffer[]): void {
  if (!stream.writable) return
  const bytes = parts.reduce((sum, part) => sum + part.length, 0)
  if (bytes <= JOINED_BYTES_MAX) stream.write(Buffer.concat(parts, bytes))
  else for (const part of parts) stream.write(part)
}
