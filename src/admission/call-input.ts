import { GatewayError } from '../errors.ts'
import { isWellFormed } from '../http/well-formed.ts'
import type { GivenParameter } from './parameters.ts'

/**
 * The parameters of a query string, in order, decoded once as a form (`+` is a blank).
 *
 * @throws GatewayError INVALID_ENCODING for what is not percent-encoded UTF-8
 */
export function queryParameters(query: string): GivenParameter[] {
  return query
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=')
      const name = equals < 0 ? part : part.slice(0, equals)
      return { name: formDecoded(name), value: equals < 0 ? '' : formDecoded(part.slice(equals + 1)) }
    })
}

/**
 * The parameters of a JSON body: its members. One that is null is not given, and the items of a list are given one
 * after another. `undefined` is no body.
 *
 * @throws GatewayError VALIDATION_ERROR for a body that is no object
 */
export function bodyParameters(body: unknown): GivenParameter[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body must be a JSON object of parameters.' })
  }
  return Object.entries(body).flatMap(([name, value]: [string, unknown]) => {
    const values: unknown[] = Array.isArray(value) ? value : value === null ? [] : [value]
    return values.map((item) => ({ name, value: item }))
  })
}

function formDecoded(text: string): string {
  let decoded: string
  try {
    decoded = decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new GatewayError('INVALID_ENCODING', { cause })
  }
  if (!isWellFormed(decoded)) throw new GatewayError('INVALID_ENCODING')
  return decoded
}
