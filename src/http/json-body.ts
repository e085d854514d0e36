import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'
import { isWellFormed } from './well-formed.ts'

const DEPTH_MAX = 32
const MEMBERS_MAX = 10_000

/** Largest body that holds credentials, bytes: parsing costs time, and anybody can send one. */
export const CREDENTIALS_BYTES_MAX = 4_096

/** Names by which an object's prototype can be reached. */
const POISONED = new Set(['__proto__', 'constructor', 'prototype'])

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * The JSON of a request's body, which must be sent as such: `application/json` in UTF-8, not compressed.
 *
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR
 */
export function readJsonBody(headers: IncomingHttpHeaders, bytes: Buffer): unknown {
  const type = headers['content-type'] ?? ''
  const charset = /charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1]
  const encoding = headers['content-encoding']
  if (
    !/^application\/json\s*(;|$)/i.test(type) ||
    (charset && charset.toLowerCase() !== 'utf-8') ||
    (encoding && encoding !== 'identity')
  ) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  }
  return parseJsonBody(bytes)
}

/**
 * Parses a request body strictly: UTF-8, each member once, bounded depth, no prototype names, well-formed texts.
 *
 * @throws GatewayError INVALID_ENCODING, INVALID_JSON or VALIDATION_ERROR
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
  checkMembers(text)
  return value
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

/** What JSON.parse accepts and we do not: a member twice, a poisoned name, ill-formed text. The text is valid JSON. */
function checkMembers(text: string): void {
  const objects: (Set<string> | undefined)[] = []
  let count = 0
  let isName = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (character === '{' || character === '[') {
      objects.push(character === '{' ? new Set() : undefined)
      isName = character === '{'
    } else if (character === '}' || character === ']') {
      objects.pop()
      isName = false
    } else if (character === ',') {
      isName = objects.at(-1) !== undefined
    } else if (character === '"') {
      const end = endOfString(text, index)
      const value: string = JSON.parse(text.slice(index, end + 1))
      if (!isWellFormed(value)) throw new GatewayError('INVALID_ENCODING')
      if (isName) {
        count += 1
        checkName(objects.at(-1), value, count)
      }
      isName = false
      index = end
    }
  }
}

function checkName(seen: Set<string> | undefined, name: string, count: number): void {
  if (seen?.has(name)) throw new GatewayError('INVALID_JSON', { message: 'The body has a member twice.' })
  if (POISONED.has(name))
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body has a member that is not allowed.' })
  if (count > MEMBERS_MAX) throw new GatewayError('VALIDATION_ERROR', { message: 'The body has too many members.' })
  seen?.add(name)
}

/** Index of the quotation mark that ends the string starting at `start`, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0x5c) index += 1
    else if (code === 0x22) return index
  }
  return text.length
}
