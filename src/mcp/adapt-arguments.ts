import { exactDecimal } from '../catalog/exact-number.ts'
import { isObject } from '../catalog/json.ts'
import { GatewayError } from '../errors.ts'
import { parseJsonBody, spelledNumber } from '../http/request/json-body.ts'
import { invalidArguments } from './invalid-arguments.ts'

/** The part of a JSON schema that this file reads. */
interface Shape {
  type?: unknown
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  anyOf?: Shape[]
}

/**
 * Converts the arguments of a tool to the types of its schema, because models and their clients
 * write a value in several ways: null, blank text or an empty list for an optional member without a
 * value; JSON text for null, an object or a list; text for a number or a boolean; a number for
 * text. Values that cannot be converted stay, and the validator reports them. Objects without
 * declared members, such as the parameters of a call, stay unchanged.
 *
 * @throws GatewayError INVALID_PARAMETER for JSON text that a body may not contain
 */
export function adaptTo(schema: unknown, given: unknown): unknown {
  return adapt(schema as Shape, given)
}

/**
 * A copy of the parameters of a call in which numbers keep their spelling: if JavaScript would
 * write a number differently, such as 1.10, it becomes a text, as in the body of a call. Use it
 * before parameters are copied, because a copy loses the spelling.
 */
export function asWritten(parameters: Record<string, unknown>): Record<string, unknown> {
  const written = Object.entries(parameters).map(([name, value]): [string, unknown] => [
    name,
    Array.isArray(value)
      ? value.map((item, index) => spelledNumber(value, index) ?? item)
      : (spelledNumber(parameters, name) ?? value),
  ])
  return Object.fromEntries(written)
}

function adapt(shape: Shape, given: unknown): unknown {
  const types = typesOf(shape)
  const value = typeof given === 'string' && !types.has('string') ? fromText(types, shape, given) : given
  if (Array.isArray(value)) return shape.items ? value.map((item) => adapt(shape.items ?? {}, item)) : value
  if (isObject(value)) return shape.properties ? adaptMembers(shape, shape.properties, value) : value
  const isText = types.has('string') && !types.has('number') && !types.has('integer')
  return isText && typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
}

function adaptMembers(
  { required = [] }: Shape,
  properties: Record<string, Shape>,
  given: Record<string, unknown>,
): Record<string, unknown> {
  const kept = Object.entries(given).flatMap(([name, written]) => {
    const value = Object.hasOwn(properties, name) ? adapt(properties[name] ?? {}, written) : written
    return value === null || (isEmpty(value) && !required.includes(name)) ? [] : [[name, value]]
  })
  return Object.fromEntries(kept)
}

/** A blank text, or a list that has nothing but null and blank texts. */
function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.every((item) => item === null || isBlank(item)) : isBlank(value)
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === ''
}

function fromText(types: Set<unknown>, shape: Shape, text: string): unknown {
  const word = text.trim()
  if (word === 'null') return null
  if (types.has('object') || types.has('array')) {
    const isOfKind = (value: unknown) => (Array.isArray(value) ? types.has('array') : isObject(value))
    if (/^[[{]/.test(word)) {
      const value = parsed(word)
      return isOfKind(value) || isEmpty(value) ? value : text
    }
    // A text such as `name, capital` for a list of names.
    const isList = word !== '' && types.has('array') && typesOf(shape.items ?? {}).has('string')
    const items = word.split(',').map((item) => item.trim())
    return isList ? items.filter((item) => item !== '') : text
  }
  if (types.has('number') || types.has('integer')) return exactDecimal(word) ?? text
  if (types.has('boolean') && /^(true|false)$/i.test(word)) return word.toLowerCase() === 'true'
  return text
}

/** Parses text under the same rules as a request body. */
function parsed(text: string): unknown {
  try {
    return parseJsonBody(Buffer.from(text))
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    if (error.code === 'INVALID_JSON') return undefined
    throw invalidArguments(error.message)
  }
}

function typesOf({ type, anyOf = [] }: Shape): Set<unknown> {
  return new Set([...[type ?? []].flat(), ...anyOf.flatMap((each) => [...typesOf(each)])])
}
