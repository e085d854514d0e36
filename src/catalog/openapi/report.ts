import { type Path, placeOf, pointerOf } from './places.ts'

/** What is wrong in a document, or what the gateway leaves out of it. */
export interface Finding {
  file: string
  /** Counted from 1; 0 when the finding is about the whole file. */
  line: number
  /** JSON pointer into the document; empty for its root. */
  pointer: string
  /** A sentence or two, without the place. */
  text: string
}

/**
 * What a reading found. A document with errors is not served; what is left out does not keep the
 * rest from it.
 */
export interface Report {
  errors: Finding[]
  leftOut: Finding[]
}

/**
 * Errors that are reported of one document: a document that is wrong throughout is not worth ten
 * thousand lines.
 */
const ERRORS_MAX = 50

/** Collects the findings of one document. */
export class Findings implements Report {
  readonly errors: Finding[] = []
  readonly leftOut: Finding[] = []
  readonly #file: string
  #root: unknown

  constructor(file: string) {
    this.#file = file
  }

  /** From now on places are looked up in this document. */
  readFrom(root: unknown): void {
    this.#root = root
  }

  error(path: Path, text: string): void {
    if (this.errors.length < ERRORS_MAX) this.errors.push(this.#finding(path, text))
  }

  leaveOut(path: Path, text: string): void {
    this.leftOut.push(this.#finding(path, text))
  }

  /** An error outside the document's tree, such as one of the syntax. */
  errorAt(place: { file: string; line: number }, text: string): void {
    if (this.errors.length < ERRORS_MAX) this.errors.push({ ...place, pointer: '', text })
  }

  #finding(path: Path, text: string): Finding {
    const { file, line } = placeOf(this.#root, path) ?? { file: this.#file, line: 0 }
    return { file, line, pointer: pointerOf(path), text }
  }
}

/** `orders.yaml:41 /paths/~1orders/post: no effect` as a line for people and logs. */
export function findingLine({ file, line, pointer, text }: Finding): string {
  return `${file}${line === 0 ? '' : `:${line}`}${pointer === '' ? '' : ` ${pointer}`}: ${text}`
}

/**
 * Thrown inside the reading of a document when going on makes no sense. Its finding is reported
 * already.
 */
export class Unreadable extends Error {}
