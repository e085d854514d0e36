/** Where the values of a document stand in its file, for messages. */

/** A line of a file, counted from 1. */
export interface Place {
  file: string
  line: number
}

/** Names of members and indexes of items that lead from the root of a document to a value. */
export type Path = readonly (string | number)[]

const linesOf = new WeakMap<object, Map<string, Place>>()

/** Remembers the place of a member of an object, or of an item of a list. */
export function notePlace(container: object, name: string | number, place: Place): void {
  const lines = linesOf.get(container) ?? new Map<string, Place>()
  linesOf.set(container, lines.set(String(name), place))
}

/** The place of a value, or of the nearest enclosing value whose place is known. */
export function placeOf(root: unknown, path: Path): Place | undefined {
  let found: Place | undefined
  let value = root
  for (const name of path) {
    if (typeof value !== 'object' || value === null) break
    found = linesOf.get(value)?.get(String(name)) ?? found
    value = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
  }
  return found
}

/** Copies the place of a member, for a document that is merged from two. */
export function copyPlace(from: object, to: object, name: string | number): void {
  const place = linesOf.get(from)?.get(String(name))
  if (place) notePlace(to, name, place)
}

/** The path as a JSON pointer (RFC 6901): `/paths/~1orders/post`. */
export function pointerOf(path: Path): string {
  return path.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** The path of a JSON pointer; undefined if the text is not a JSON pointer. */
export function pathOfPointer(pointer: string): string[] | undefined {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}
