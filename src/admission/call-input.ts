import { GatewayError } from '../errors.ts'
import { spelledNumber } from '../http/request/json-body.ts'
import { isWellFormed } from '../http/request/well-formed.ts'
import type { GivenParameter } from './parameters.ts'

/** In order, decoded once as a form (`+` is a blank). @throws GatewayError INVALID_ENCODING */
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
 * Null is not given. A number that JavaScript writes in another way than its sender, such as
 * `1.10`, is its text, as it is in a query.
 *
 * @throws GatewayError VALIDATION_ERROR
 */
export function bodyParameters(body: unknown): GivenParameter[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body must be a JSON object of parameters.' })
  }
  return Object.entries(body).flatMap(([name, value]: [string, unknown]) =>
    value === null ? [] : [{ name, value: spelledNumber(body, name) ?? value }],
  )
}

/** A list is its items one after another. */
export function repeated({ name, value }: GivenParameter): GivenParameter[] {
  if (!Array.isArray(value)) return [{ name, value }]
  return value.map((item, index) => ({ name, value: spelledNumber(value, index) ?? item }))
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
