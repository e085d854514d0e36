import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../../errors.ts'
import { readingOf } from './exact-number.ts'
import { isName, sentence } from './violation-words.ts'
import { isWellFormed } from './well-formed.ts'

const DEPTH_MAX = 32
const MEMBERS_MAX = 10_000

/** Names by which an object's prototype can be reached. */
const POISONED = new Set(['__proto__', 'constructor', 'prototype'])

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Numbers that JavaScript writes in another way than their sender, by the object or the list that
 * holds them.
 */
const spellings = new WeakMap<object, Map<string, string>>()

/** A number of a body that a double cannot hold. */
export class InexactNumber extends GatewayError {
  /** The member that holds it, if the name may stand in a sentence. */
  readonly member: string | undefined
  readonly reason: string

  constructor(text: string, member: string | undefined) {
    const shown = text.length <= SHOWN_DIGITS_MAX ? text : `${text.slice(0, SHOWN_DIGITS_MAX)}…`
    const reason = `the number ${shown} would lose digits; send it as text`
    super('VALIDATION_ERROR', {
      message: sentence(member === undefined ? `A member is invalid: ${reason}` : `${member} is invalid: ${reason}`),
    })
    this.member = member
    this.reason = reason
  }
}

const SHOWN_DIGITS_MAX = 40

/**
 * Longest body whose numbers keep their spelling: to look at each costs half a microsecond. In a
 * longer body 1.10 is 1.1.
 */
const SPELLED_TEXT_MAX = 65_536

/**
 * The JSON of a request's body, which must be sent as such: `application/json`, not compressed.
 * Parameters of the type have no effect (RFC 8259, 11): the bytes are checked as UTF-8 whatever a
 * charset says.
 *
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR
 */
export function readJsonBody(headers: IncomingHttpHeaders, bytes: Buffer): unknown {
  const type = headers['content-type'] ?? ''
  const encoding = headers['content-encoding']
  if (!/^\s*application\/json\s*(;|$)/i.test(type) || (encoding && encoding !== 'identity')) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  }
  return parseJsonBody(bytes)
}

/**
 * Parses a request body strictly: UTF-8, each member once, bounded depth, no prototype names,
 * well-formed texts, and no number that a double cannot hold.
 *
 * @throws GatewayError INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR, of which InexactNumber
 *   is a kind
 */
export function parseJsonBody(bytes: Buffer): unknown {
  const text = decode(bytes)
  checkDepth(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new GatewayError('INVALID_JSON', { cause })
  }
  return checkMembers(text) && text.length <= SPELLED_TEXT_MAX ? parseWithSpellings(text) : value
}

/**
 * A number as its sender wrote it, when JavaScript writes it in another way: `1.10`, which is 1.1.
 */
export function spelledNumber(holder: object, name: string | number): string | undefined {
  return spellings.get(holder)?.get(String(name))
}

/** Parses text that has passed all checks, and keeps the spelling of its numbers. */
function parseWithSpellings(text: string): unknown {
  // biome-ignore lint/complexity/useMaxParams: the form of JSON.parse callbacks.
  return JSON.parse(text, function (this: object, name: string, value: unknown, context?: { source: string }) {
    if (typeof value !== 'number' || context === undefined || context.source === String(value)) return value
    const ofHolder = spellings.get(this) ?? new Map<string, string>()
    spellings.set(this, ofHolder.set(name, context.source))
    return value
  })
}

function decode(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new GatewayError('INVALID_ENCODING', { cause })
  }
}

/** Before parsing, so that depth never reaches a recursive function. */
function checkDepth(text: string): void {
  let depth = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0x22) index = endOfString(text, index)
    else if (code === 0x7b || code === 0x5b) depth += 1
    else if (code === 0x7d || code === 0x5d) depth -= 1
    if (depth > DEPTH_MAX) {
      throw new GatewayError('VALIDATION_ERROR', { message: `The body is nested deeper than ${DEPTH_MAX} levels.` })
    }
  }
}

/**
 * Refuses what JSON.parse accepts and we do not: a member twice, a poisoned name, ill-formed text,
 * a number that a double cannot hold. The text is valid JSON.
 *
 * @returns whether JavaScript writes a number of the text in another way
 */
function checkMembers(text: string): boolean {
  const objects: (Set<string> | undefined)[] = []
  let count = 0
  let isMember = false
  let member = ''
  let isSpelled = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (character === '{' || character === '[') {
      objects.push(character === '{' ? new Set() : undefined)
      isMember = character === '{'
    } else if (character === '}' || character === ']') {
      objects.pop()
      isMember = false
    } else if (character === ',') {
      isMember = objects.at(-1) !== undefined
    } else if (character === '"') {
      const end = endOfString(text, index)
      const inner = text.slice(index + 1, end)
      // A body may have a hundred thousand short strings. Only a string with an escape is parsed
      // once more.
      const value: string = inner.includes('\\') ? JSON.parse(`"${inner}"`) : inner
      if (!isWellFormed(value)) throw new GatewayError('INVALID_ENCODING')
      if (isMember) {
        count += 1
        checkName(objects.at(-1), value, count)
        member = value
      }
      isMember = false
      index = end
    } else if (character === '-' || (character >= '0' && character <= '9')) {
      const end = endOfNumber(text, index)
      const number = text.slice(index, end)
      const reading = readingOf(number)
      if (reading === 'another-number') throw new InexactNumber(number, isName(member) ? member : undefined)
      isSpelled ||= reading === 'same-number'
      index = end - 1
    }
  }
  return isSpelled
}

function checkName(seen: Set<string> | undefined, name: string, count: number): void {
  if (seen?.has(name)) throw new GatewayError('INVALID_JSON', { message: 'A member appears twice in the body.' })
  if (POISONED.has(name))
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body has a member that is not allowed.' })
  if (count > MEMBERS_MAX) throw new GatewayError('VALIDATION_ERROR', { message: 'The body has too many members.' })
  seen?.add(name)
}

/**
 * Index of the quotation mark that ends the string starting at `start`, or of the end of the text.
 */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0x5c) index += 1
    else if (code === 0x22) return index
  }
  return text.length
}

/** Index behind the number that starts at `start`. */
function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && '0123456789.eE+-'.includes(text.charAt(end))) end += 1
  return end
}
