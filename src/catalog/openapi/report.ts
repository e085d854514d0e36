import { type Path, placeOf, pointerOf } from './places.ts'

/** An error of a document, or a part of it that the gateway leaves out. */
export interface Finding {
  file: string
  /** Counted from 1; 0 if the finding is about the whole file. */
  line: number
  /** JSON pointer into the document; empty for the root. */
  pointer: string
  /** One or two sentences without the place. */
  text: string
}

/**
 * The findings of a reading. A document with errors is not served. Parts that are left out do not
 * prevent the rest from being served.
 */
export interface Report {
  errors: Finding[]
  leftOut: Finding[]
}

/** Most errors that are reported of one document. More lines would help nobody. */
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

  /** Looks places up in this document from now on. */
  readFrom(root: unknown): void {
    this.#root = root
  }

  error(path: Path, text: string): void {
    if (this.errors.length < ERRORS_MAX && this.#isNew(path, text)) this.errors.push(this.#finding(path, text))
  }

  /** Reports a part that is left out. A part that several operations share is reported once. */
  leaveOut(path: Path, text: string): void {
    if (this.leftOut.length > LEFT_OUT_MAX) return
    if (!this.#isNew(path, text)) return
    const finding = this.#finding(path, text)
    this.leftOut.push(
      this.leftOut.length < LEFT_OUT_MAX
        ? finding
        : { ...finding, text: 'Further parts that are left out are not listed.' },
    )
  }

  /** Reports an error outside of the document's values, such as a syntax error. */
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

/**
 * Writes a finding as one line for people and logs: `orders.yaml:41 /paths/~1orders/post: no
 * effect`.
 */
export function findingLine({ file, line, pointer, text }: Finding): string {
  const written = `${file}${line === 0 ? '' : `:${line}`}${pointer === '' ? '' : ` ${pointer}`}: ${text}`
  // Names in a document could otherwise add lines of their own to a log or a terminal.
  return written.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`
  })
}

/** Stops the reading of a document. The finding has already been reported. */
export class Unreadable extends Error {}
