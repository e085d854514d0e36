import { isObject } from '../catalog/json.ts'
import { GatewayError } from '../errors.ts'
import { parseJsonBody, spelledNumber } from '../http/request/json-body.ts'
import { invalidArguments } from './invalid-arguments.ts'

/** What is read of a JSON schema. */
interface Shape {
  type?: unknown
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  anyOf?: Shape[]
}

/**
 * As `DECIMAL` of the call route: no plus sign, leading zeros or more digits than a double holds.
 */
const DECIMAL = /^-?(0|[1-9]\d{0,15})(\.\d{0,30})?(e[-+]?\d{1,2})?$/i

/**
 * Adapts the arguments of a tool to its schema, because models and their clients write a value in
 * more than one way: null, blank text or an empty list for an optional member that they have no
 * value for; JSON text for an object or a list; text for a number, true or false; a number for
 * text. What cannot be adapted stays as it is, for the validator to name. Objects without declared
 * members, such as the parameters of a call, stay as they are.
 *
 * @throws GatewayError INVALID_PARAMETER for JSON text that no body may hold
 */
export function adaptTo(schema: unknown, given: unknown): unknown {
  return adapt(schema as Shape, given)
}

/**
 * Parameters of a call with each number as its sender wrote it: a number that JavaScript would
 * write in another way, such as 1.10, is its text, as in the body of a call. A copy of the
 * parameters has lost how they were written.
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
  const kept = Object.entries(given).flatMap(([name, value]) => {
    if (value === null || (isEmpty(value) && !required.includes(name))) return []
    return [[name, Object.hasOwn(properties, name) ? adapt(properties[name] ?? {}, value) : value]]
  })
  return Object.fromEntries(kept)
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'string' ? value.trim() === '' : Array.isArray(value) && value.length === 0
}

function fromText(types: Set<unknown>, shape: Shape, text: string): unknown {
  const word = text.trim()
  if (types.has('object') || types.has('array')) {
    const isOfKind = (value: unknown) => (Array.isArray(value) ? types.has('array') : isObject(value))
    if (/^[[{]/.test(word)) {
      const value = parsed(word)
      return isOfKind(value) ? value : text
    }
    // `name, capital` for a list of names.
    const isList = types.has('array') && typesOf(shape.items ?? {}).has('string')
    return isList ? word.split(',').map((item) => item.trim()) : text
  }
  if ((types.has('number') || types.has('integer')) && DECIMAL.test(word)) return Number(word)
  if (types.has('boolean') && /^(true|false)$/i.test(word)) return word.toLowerCase() === 'true'
  return text
}

/** Text is read as a body is: what a body may not hold, an argument may not hold either. */
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
