import type { Path } from './places.ts'

/** The gateway cannot offer an operation; the message says why. */
export class NotOffered extends Error {
  readonly path: Path

  constructor(path: Path, reason: string) {
    super(reason)
    this.path = path
  }
}
