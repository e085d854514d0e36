import type { Api, ApiEndpoint, ParameterSchema } from '../catalog/catalog.ts'
import { expectation } from '../catalog/parameter-words.ts'
import { type CallContext, InvalidParameter } from '../catalog/upstream.ts'
import { GatewayError } from '../errors.ts'

/** A parameter as the caller sent it: text from a query, a JSON value from a body. */
export interface GivenParameter {
  name: string
  value: unknown
}

/** What a call asks for, checked: declared parameters typed and completed, the others as given, in order. */
export interface CheckedParameters {
  parameters: Record<string, unknown>
  extra: [name: string, value: string][]
}

const PARAMETERS_MAX = 100

/** Names that carry a credential or change the form of an answer at one upstream or another. */
const RESERVED_EVERYWHERE = new Set([
  'apikey',
  'api_key',
  'api-key',
  'key',
  'token',
  'access_token',
  'auth',
  'authorization',
  'client_id',
  'client_secret',
  'callback',
  'jsonp',
])

/**
 * Checks the parameters of a call against the catalog's bounds.
 *
 * @throws GatewayError INVALID_PARAMETER naming the parameter
 */
export function checkParameters(
  api: Api,
  { endpoint, parameters: declared }: ApiEndpoint,
  given: GivenParameter[],
  context: CallContext,
): CheckedParameters {
  if (given.length > PARAMETERS_MAX) throw invalid(undefined, `at most ${PARAMETERS_MAX} may be sent`)
  const names = new Set(declared.map(({ name }) => name))
  const values = new Map<string, unknown>()
  const extra: [string, string][] = []
  for (const { name, value } of given) {
    if (!names.has(name)) extra.push([name, forwardable(api, name, value)])
    else if (values.has(name)) throw invalid(name, 'it is given more than once')
    else values.set(name, value)
  }
  const parameters: Record<string, unknown> = {}
  for (const { name, schema, required, validator } of declared) {
    const value = values.has(name) ? toType(schema, values.get(name)) : schema.default
    if (value === undefined) {
      if (required || values.has(name)) throw invalid(name, expectation(schema, values.has(name)))
      continue
    }
    if (!validator.Check(value)) throw invalid(name, expectation(schema, true))
    parameters[name] = value
  }
  return { parameters: complete(endpoint, parameters, extra, context), extra }
}

/** What only the endpoint can say: its own completion, and the request that comes of it, which must be buildable. */
function complete(
  endpoint: ApiEndpoint['endpoint'],
  parameters: Record<string, unknown>,
  extra: [string, string][],
  context: CallContext,
): Record<string, unknown> {
  try {
    const completed = endpoint.complete?.(parameters, context) ?? parameters
    for (const request of [endpoint.request(completed, context)].flat()) {
      const taken = extra.find(([name]) => Object.hasOwn(request.query ?? {}, name))
      if (taken) throw new InvalidParameter(taken[0], 'the gateway sets it')
    }
    return completed
  } catch (error) {
    if (error instanceof InvalidParameter) throw invalid(error.parameter, error.reason)
    throw error
  }
}

function forwardable(api: Api, name: string, value: unknown): string {
  // Some upstreams drop them, and would read a declared or a reserved name.
  if (name !== name.trim()) throw invalid(undefined, 'its name has blanks around it')
  const lower = name.toLowerCase()
  if (
    RESERVED_EVERYWHERE.has(lower) ||
    lower === api.upstream.credential?.name.toLowerCase() ||
    api.upstream.reservedParameters?.includes(lower)
  ) {
    throw invalid(name, 'it is reserved')
  }
  if (name === '') throw invalid(undefined, 'one has no name')
  if (typeof value === 'string') return value
  // JSON's 1e400 is read as infinity, which no text says.
  if (Number.isFinite(value) || typeof value === 'boolean') return String(value)
  throw invalid(name, 'it must be a text, a number or a boolean')
}

/** Plain decimal notation only: no sign but minus, no exponent, no hexadecimal, no blanks, no minus zero. */
const DECIMAL = /^(?!-0(\.0+)?$)-?(0|[1-9]\d{0,15})(\.\d{1,17})?$/

/** The value in its declared type; undefined when it cannot be that. */
function toType(schema: ParameterSchema, value: unknown): unknown {
  switch (schema.type) {
    case 'number':
    case 'integer':
      if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
      return typeof value === 'string' && DECIMAL.test(value) ? Number(value) : undefined
    case 'boolean':
      if (typeof value === 'boolean') return value
      return value === 'true' ? true : value === 'false' ? false : undefined
    default:
      if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
      return typeof value === 'string' ? value : undefined
  }
}

function invalid(parameter: string | undefined, reason: string): GatewayError {
  // A name that the caller made up goes back only in a form that cannot be mistaken for anything else.
  const name = parameter !== undefined && /^[\w.-]{1,64}$/.test(parameter) ? parameter : undefined
  return new GatewayError('INVALID_PARAMETER', {
    message: name === undefined ? `A parameter is invalid: ${reason}.` : `Parameter ${name} is invalid: ${reason}.`,
    tokens: name === undefined ? {} : { param: name },
  })
}
