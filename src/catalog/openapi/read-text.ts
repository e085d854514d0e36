import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
} from 'yaml'
import { notePlace } from './places.ts'
import { type Findings, Unreadable } from './report.ts'
import { DEPTH_MAX, SEVERAL_DOCUMENTS, TokenGuard, VALUES_MAX } from './token-guard.ts'

/** Largest file that is read, bytes. */
export const FILE_BYTES_MAX = 5 * 1024 * 1024

const ALIASES_MAX = 100

/** Most characters of all texts. If an alias repeats a text, the text counts again. */
const CHARACTERS_MAX = 2 * FILE_BYTES_MAX

/** Names that lead to the prototype of an object. */
const POISONED = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * Reads a file of JSON or YAML 1.2 (core schema, UTF-8) into plain values, and remembers the line
 * of each value. Every limit fails closed: a file above a limit is not read at all.
 *
 * Two features of the YAML library are not used because their cost grows faster than the file: the
 * search for duplicate names, which is quadratic, and the resolution of aliases.
 *
 * @throws Unreadable after it has reported the error
 */
export function readText(file: string, bytes: Uint8Array, findings: Findings): unknown {
  const fail = (line: number, words: string): never => {
    findings.errorAt({ file, line }, words)
    throw new Unreadable(words)
  }
  if (bytes.length > FILE_BYTES_MAX) return fail(0, `The file has more than ${FILE_BYTES_MAX / 1_048_576} MB.`)
  const text = decoded(bytes)
  if (text === undefined) return fail(0, 'The file is not UTF-8 text.')
  const lines = new LineCounter()
  const document = parse(text, lines, fail)
  if (!document) return fail(0, 'The file is empty.')
  const lineAt = (node: Node | null | undefined): number =>
    node?.range ? Math.max(1, lines.linePos(node.range[0]).line) : 0
  const [problem] = [...document.errors, ...document.warnings]
  if (problem) return fail(Math.max(1, lines.linePos(problem.pos[0]).line), syntaxWords(problem.code, problem.message))
  return new Reader(file, lineAt, fail).read(document.contents)
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

type Fail = (line: number, words: string) => never
type LineAt = (node: Node | null | undefined) => number

/**
 * Parses the text token by token. The guard sees each token first, so that the parser never reads
 * more than the guard allows.
 */
function parse(text: string, lineCounter: LineCounter, fail: Fail): Document.Parsed | undefined {
  const parser = new Parser(lineCounter.addNewLine)
  // The parser reports the start of each line except the first.
  lineCounter.addNewLine(0)
  const guard = new TokenGuard()
  const tokens: CST.Token[] = []
  let read = 0
  for (const lexeme of new Lexer().lex(text)) {
    const problem = guard.problemAfter(lexeme)
    if (problem !== undefined) return fail(Math.max(1, lineCounter.linePos(read).line), problem)
    read += lexeme.length
    tokens.push(...parser.next(lexeme))
  }
  tokens.push(...parser.end())
  const composer = new Composer({
    ...{ lineCounter, schema: 'core', version: '1.2', strict: true, uniqueKeys: false },
    ...{ prettyErrors: false, logLevel: 'error', resolveKnownTags: false, keepSourceTokens: false },
  })
  const [document, second] = composer.compose(tokens)
  if (second) return fail(Math.max(1, lineCounter.linePos(second.range[0]).line), SEVERAL_DOCUMENTS)
  return document
}

function syntaxWords(code: string, message: string): string {
  if (code === 'TAG_RESOLVE_FAILED') return 'The gateway does not accept YAML tags such as !!set or !include.'
  if (code === 'RESOURCE_EXHAUSTION') return `Values are nested deeper than ${DEPTH_MAX} levels.`
  return `The file is neither JSON nor YAML 1.2: ${message.slice(0, 200)}`
}

/** Turns nodes of the YAML library into plain values. */
class Reader {
  readonly #file: string
  readonly #lineAt: LineAt
  readonly #fail: Fail
  /** The anchored values, each with the number of values and characters in it. */
  readonly #anchored = new Map<string, { value: unknown; nodes: number; characters: number }>()
  #nodes = 0
  #characters = 0
  #aliases = 0

  constructor(file: string, lineAt: LineAt, fail: Fail) {
    this.#file = file
    this.#lineAt = lineAt
    this.#fail = fail
  }

  read(node: Node | null, depth = 0): unknown {
    const before = { nodes: this.#nodes, characters: this.#characters }
    this.#count({ nodes: 1, characters: isScalar(node) ? String(node.value).length : 0 }, node)
    if (depth > DEPTH_MAX) this.#fail(this.#lineAt(node), `Values are nested deeper than ${DEPTH_MAX} levels.`)
    if (isAlias(node)) return this.#repeat(node)
    const value = isMap(node)
      ? this.#object(node.items, depth)
      : isSeq(node)
        ? this.#list(node.items, depth)
        : this.#scalar(node)
    if (typeof value === 'number' && !Number.isFinite(value)) {
      this.#fail(this.#lineAt(node), 'A number is infinite or .nan, which JSON cannot represent.')
    }
    const anchor = node && 'anchor' in node ? node.anchor : undefined
    if (anchor !== undefined) {
      const nodes = this.#nodes - before.nodes
      this.#anchored.set(anchor, { value, nodes, characters: this.#characters - before.characters })
    }
    return value
  }

  #count({ nodes, characters }: { nodes: number; characters: number }, node: Node | null): void {
    this.#nodes += nodes
    this.#characters += characters
    if (this.#characters > CHARACTERS_MAX) {
      const words = `The file has more than ${CHARACTERS_MAX / 1_048_576} MB of text. A text that aliases repeat counts each time.`
      this.#fail(this.#lineAt(node), words)
    }
    if (this.#nodes > VALUES_MAX) {
      this.#fail(
        this.#lineAt(node),
        `The file has more than ${VALUES_MAX} values. A value that aliases repeat counts each time.`,
      )
    }
  }

  #repeat(node: Node & { source: string }): unknown {
    this.#aliases += 1
    const line = this.#lineAt(node)
    if (this.#aliases > ALIASES_MAX) this.#fail(line, `The file has more than ${ALIASES_MAX} aliases.`)
    const anchored = this.#anchored.get(node.source)
    if (!anchored) return this.#fail(line, 'An alias must name an anchor that stands before it.')
    this.#count(anchored, node)
    return anchored.value
  }

  #object(pairs: { key: unknown; value: unknown }[], depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    for (const { key, value } of pairs) {
      const keyNode = key as Node | null
      const line = this.#lineAt(keyNode)
      if (!isScalar(keyNode) || keyNode.value === null || keyNode.anchor !== undefined) {
        this.#fail(line, 'The name of a member must be a string.')
      }
      const name = String((keyNode as { value: unknown }).value)
      // Without this error a merge key would be ignored silently, with everything that it should
      // merge.
      if (name === '<<') this.#fail(line, 'YAML 1.2 has no merge key (<<). Write the members out.')
      if (POISONED.has(name)) this.#fail(line, `A member has the name ${name}, which a document must not use.`)
      if (Object.hasOwn(object, name))
        this.#fail(line, `The member ${name.slice(0, 60)} appears twice in the same object.`)
      object[name] = this.read(value as Node | null, depth + 1)
      notePlace(object, name, { file: this.#file, line })
    }
    return object
  }

  #list(nodes: unknown[], depth: number): unknown[] {
    const list: unknown[] = []
    for (const [index, item] of nodes.entries()) {
      list.push(this.read(item as Node | null, depth + 1))
      notePlace(list, index, { file: this.#file, line: this.#lineAt(item as Node | null) })
    }
    return list
  }

  #scalar(node: unknown): unknown {
    const value: unknown = isScalar(node) ? node.value : null
    return typeof value === 'bigint' ? Number(value) : value
  }
}
