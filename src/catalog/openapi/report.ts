import { type Path, placeOf, pointerOf } from './places.ts'

/** What is wrong in a document, or what the gateway leaves out of it. */
export interface Finding {
  file: string
  /** Counted from 1; 0 if the finding is about the whole file. */
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
const LEFT_OUT_MAX = 500

/** Collects the findings of one document. */
export class Findings implements Report {
  readonly errors: Finding[] = []
  readonly leftOut: Finding[] = []
  readonly #file: string
  readonly #reported = new Set<string>()
  #root: unknown

  constructor(file: string) {
    this.#file = file
  }

  /** From now on places are looked up in this document. */
  readFrom(root: unknown): void {
    this.#root = root
  }

  error(path: Path, text: string): void {
    if (this.errors.length < ERRORS_MAX && this.#isNew(path, text)) this.errors.push(this.#finding(path, text))
  }

  /** A part that many operations share is reported once. */
  leaveOut(path: Path, text: string): void {
    if (this.leftOut.length > LEFT_OUT_MAX) return
    if (!this.#isNew(path, text)) return
    const finding = this.#finding(path, text)
    this.leftOut.push(this.leftOut.length < LEFT_OUT_MAX ? finding : { ...finding, text: 'And more like the others.' })
  }

  /** An error outside the document's tree, such as one of the syntax. */
  errorAt(place: { file: string; line: number }, text: string): void {
    if (this.errors.length < ERRORS_MAX) this.errors.push({ ...place, pointer: '', text })
  }

  #isNew(path: Path, text: string): boolean {
    const { size } = this.#reported
    return this.#reported.add(`${pointerOf(path)} ${text}`).size > size
  }

  #finding(path: Path, text: string): Finding {
    const { file, line } = placeOf(this.#root, path) ?? { file: this.#file, line: 0 }
    return { file, line, pointer: pointerOf(path), text }
  }
}

/** `orders.yaml:41 /paths/~1orders/post: no effect` as a line for people and logs. */
export function findingLine({ file, line, pointer, text }: Finding): string {
  const written = `${file}${line === 0 ? '' : `:${line}`}${pointer === '' ? '' : ` ${pointer}`}: ${text}`
  // Names in a document could otherwise write lines of their own into a log or a terminal.
  return written.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`
  })
}

/**
 * Thrown inside the reading of a document when going on makes no sense. Its finding is reported
 * already.
 */
export class Unreadable extends Error {}
