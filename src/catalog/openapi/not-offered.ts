import type { Path } from './places.ts'

/** Why an operation cannot be offered. */
export class NotOffered extends Error {
  readonly path: Path

  constructor(path: Path, reason: string) {
    super(reason)
    this.path = path
  }
}
