import { isObject } from '../json.ts'
import { type Path, pathOfPointer } from './places.ts'
import { type Findings, Unreadable } from './report.ts'

/** Most references in a chain. */
const CHAIN_MAX = 20

/** A value of a document, with its path. */
export interface Located {
  value: unknown
  path: Path
}

/**
 * A document whose references lead only to values of the same document. Nothing is ever fetched.
 */
export class OpenApiDocument {
  readonly root: Record<string, unknown>
  readonly findings: Findings

  constructor(root: Record<string, unknown>, findings: Findings) {
    this.root = root
    this.findings = findings
  }

  /**
   * The value to which a reference leads, or the value itself. Members beside the reference are
   * ignored.
   *
   * @throws Unreadable
   */
  resolve({ value, path }: Located): Located {
    let found: Located = { value, path }
    const passed = new Set<unknown>()
    while (isObject(found.value) && found.value.$ref !== undefined) {
      if (passed.has(found.value))
        return this.#fail(path, 'The reference points to itself, directly or through other references.')
      if (passed.size === CHAIN_MAX) {
        return this.#fail(path, `A chain of references has more than ${CHAIN_MAX} links.`)
      }
      passed.add(found.value)
      found = this.follow(found)
    }
    return found
  }

  /**
   * The value to which a reference leads. This value may be a reference too.
   * @throws Unreadable
   */
  follow({ value, path }: Located): Located {
    const { $ref } = Object(value)
    const at = [...path, '$ref']
    return typeof $ref === 'string' ? this.#follow($ref, at) : this.#fail(at, 'A reference must be a string.')
  }

  /**
   * As `resolve`, but undefined if the references lead nowhere. It reports nothing, so use it only
   * for parts on which no call depends.
   */
  peek(value: unknown): unknown {
    let found = value
    for (let hops = 0; hops < CHAIN_MAX && isObject(found) && found.$ref !== undefined; hops += 1) {
      const { $ref } = found
      const target = typeof $ref === 'string' && $ref.startsWith('#') && pathOfPointer(decoded($ref.slice(1)))
      found = target ? this.#at(target) : undefined
    }
    return found
  }

  #at(path: Path): unknown {
    let value: unknown = this.root
    for (const name of path) {
      const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      value = isThere ? Reflect.get(Object(value), name) : undefined
    }
    return value
  }

  /** A member of an object, with its reference resolved. */
  member(located: Located, name: string | number): Located {
    const { value, path } = located
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    return this.resolve({ value: isThere ? Reflect.get(value, name) : undefined, path: [...path, name] })
  }

  /** The members of an object, with their references resolved; none for anything else. */
  members(located: Located): [name: string, member: Located][] {
    if (!isObject(located.value)) return []
    return Object.keys(located.value).map((name) => [name, this.member(located, name)])
  }

  /** The items of a list, with their references resolved; none for anything else. */
  items(located: Located): Located[] {
    if (!Array.isArray(located.value)) return []
    return located.value.map((_, index) => this.member(located, index))
  }

  /**
   * The objects of an optional list. Anything else in its place is an error.
   *
   * @param name the list's name in the error
   */
  list(located: Located, name: string): { value: Record<string, unknown>; path: Path }[] {
    const { value, path } = located
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.findings.error(path, `The value of ${name} must be a list of objects.`)
      return []
    }
    return this.items(located).flatMap(({ value: item, path: at }, index) => {
      if (isObject(item)) return [{ value: item, path: at }]
      this.findings.error([...path, index], `Each item of ${name} must be an object.`)
      return []
    })
  }

  #follow(reference: string, path: Path): Located {
    if (!reference.startsWith('#')) {
      return this.#fail(
        path,
        'The reference points to another file or host, and the gateway reads only this file. Bundle the document into one file.',
      )
    }
    const target = pathOfPointer(decoded(reference.slice(1)))
    if (!target) {
      return this.#fail(
        path,
        'The reference is an anchor, and the gateway reads only JSON pointers. Write a JSON pointer, such as #/components/schemas/Order.',
      )
    }
    const value = this.#at(target)
    if (value === undefined)
      return this.#fail(path, 'The reference points to a place that this document does not have.')
    return { value, path: target }
  }

  #fail(path: Path, text: string): never {
    this.findings.error(path, text)
    throw new Unreadable(text)
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
