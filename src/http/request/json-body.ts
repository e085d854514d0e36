import type { IncomingHttpHeaders } from 'node:http'
import { readingOf } from '../../catalog/exact-number.ts'
import { GatewayError } from '../../errors.ts'
import { contentCodings } from '../content-codings.ts'
import { CALL_BYTES_MAX } from './body-limits.ts'
import { isName, sentence } from './violation-words.ts'
import { isWellFormed } from './well-formed.ts'

const DEPTH_MAX = 32
const MEMBERS_MAX = 10_000

/**
 * Most values, about as many as the body of a call has bytes for. Each costs a third of a
 * microsecond or more, so a longer body of the shortest values would take fifty milliseconds.
 */
const VALUES_MAX = CALL_BYTES_MAX / 2

/** Names that lead to the prototype of an object. */
const POISONED = new Set(['__proto__', 'constructor', 'prototype'])

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * The original spelling of numbers that JavaScript writes differently, by the object or list that
 * holds them.
 */
const spellings = new WeakMap<object, Map<string, string>>()

/** A number of a body cannot be represented as a double. */
export class InexactNumber extends GatewayError {
  /** The member with the number, if its name may be part of a sentence. */
  readonly member: string | undefined
  readonly reason: string

  constructor(text: string, member: string | undefined) {
    const shown = text.length <= SHOWN_DIGITS_MAX ? text : `${text.slice(0, SHOWN_DIGITS_MAX)}…`
    const reason = `the number ${shown} would lose digits; send it as a string`
    super('VALIDATION_ERROR', {
      message: sentence(member === undefined ? `A member is invalid: ${reason}` : `${member} is invalid: ${reason}`),
    })
    this.member = member
    this.reason = reason
  }
}

const SHOWN_DIGITS_MAX = 40

/**
 * Longest body for which the spelling of numbers is kept, because each number costs half a
 * microsecond. In a longer body, 1.10 becomes 1.1.
 */
const SPELLED_TEXT_MAX = 65_536

/**
 * The JSON of a request's body. The body must be `application/json` and not compressed. Parameters
 * of the type have no effect (RFC 8259, 11): whatever the charset, the body must be UTF-8.
 *
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR
 */
export function readJsonBody(headers: IncomingHttpHeaders, bytes: Buffer): unknown {
  const type = headers['content-type'] ?? ''
  if (!/^\s*application\/json\s*(;|$)/i.test(type)) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  if (contentCodings(headers['content-encoding'] ?? '').length > 0)
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', { message: 'The body must not be compressed.' })
  return parseJsonBody(bytes)
}

/**
 * Parses a request body strictly. It must be UTF-8 with well-formed texts and bounded depth; no
 * member may appear twice or have a name that leads to the prototype; and doubles must be able to
 * hold its numbers.
 *
 * @throws GatewayError INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR; InexactNumber is a
 *   VALIDATION_ERROR
 */
export function parseJsonBody(bytes: Buffer): unknown {
  const text = decode(bytes)
  checkShape(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new GatewayError('INVALID_JSON', { cause })
  }
  return checkMembers(text) && text.length <= SPELLED_TEXT_MAX ? parseWithSpellings(text) : value
}

/**
 * A number as its sender wrote it, if JavaScript writes it differently: `1.10`, which JavaScript
 * writes as 1.1.
 */
export function spelledNumber(holder: object, name: string | number): string | undefined {
  return spellings.get(holder)?.get(String(name))
}

/** Parses a text that has passed all checks, and keeps the spelling of its numbers. */
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

/**
 * Runs before the parser, so that deep nesting never reaches a recursive function, and the number
 * of values bounds the work.
 */
function checkShape(text: string): void {
  let depth = 0
  let [values, members] = [1, 0]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0x22) index = endOfString(text, index)
    else if (code === 0x2c) values += 1
    else if (code === 0x3a) members += 1
    else if (code === 0x7b || code === 0x5b) {
      depth += 1
      values += 1
    } else if (code === 0x7d || code === 0x5d) depth -= 1
    if (values > VALUES_MAX || members > MEMBERS_MAX) {
      const many = values > VALUES_MAX ? 'values' : 'members'
      throw new GatewayError('VALIDATION_ERROR', { message: `The body has too many ${many}.` })
    }
    if (depth > DEPTH_MAX) {
      throw new GatewayError('VALIDATION_ERROR', { message: `The body is nested deeper than ${DEPTH_MAX} levels.` })
    }
  }
}

/**
 * Refuses what JSON.parse accepts and we do not: a repeated member, a prototype name, ill-formed
 * text, and a number that a double cannot hold. The text must be valid JSON.
 *
 * @returns whether JavaScript writes any number of the text differently
 */
function checkMembers(text: string): boolean {
  const objects: (Set<string> | undefined)[] = []
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
      // A body may have a hundred thousand short strings, so only strings with an escape are parsed
      // again.
      const value: string = inner.includes('\\') ? JSON.parse(`"${inner}"`) : inner
      if (!isWellFormed(value)) throw new GatewayError('INVALID_ENCODING')
      if (isMember) {
        checkName(objects.at(-1), value)
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

function checkName(seen: Set<string> | undefined, name: string): void {
  if (seen?.has(name)) throw new GatewayError('INVALID_JSON', { message: 'A member appears twice in the body.' })
  if (POISONED.has(name))
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body has a member that is not allowed.' })
  seen?.add(name)
}

/**
 * Index of the quotation mark that ends the string that begins at `start`, or of the end of the
 * text.
 */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0x5c) index += 1
    else if (code === 0x22) return index
  }
  return text.length
}

/** Index after the number that begins at `start`. */
function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && '0123456789.eE+-'.includes(text.charAt(end))) end += 1
  return end
}
