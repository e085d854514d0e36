import type { Api, ApiEndpoint, ApiParameter, ParameterSchema } from '../catalog/catalog.ts'
import { nearestName } from '../catalog/nearest-name.ts'
import { expectation } from '../catalog/parameter-words.ts'
import { requestTarget } from '../catalog/request-target.ts'
import { type CallContext, InvalidParameter } from '../catalog/upstream.ts'
import type { GatewayError } from '../errors.ts'
import { readingOf } from '../http/request/exact-number.ts'
import { spelledNumber } from '../http/request/json-body.ts'
import { isName } from '../http/request/violation-words.ts'
import { checkHoldsNoKey, checkOverridesNothing, invalidParameter, readUndeclared } from './undeclared-parameters.ts'

export interface GivenParameter {
  name: string
  value: unknown
}

/** Declared parameters typed and completed, the others as given, in order. */
export interface CheckedParameters {
  parameters: Record<string, unknown>
  extra: [name: string, value: string][]
}

const PARAMETERS_MAX = 100

/** Upstreams refuse longer request lines. */
const REQUEST_LINE_BYTES_MAX = 4_096
const REQUEST_LINE_BYTES_FIXED = 'GET  HTTP/1.1\r\n'.length

export interface CallTarget {
  api: Api
  endpoint: ApiEndpoint
}

/** Also checks the request line that the parameters make. @throws GatewayError INVALID_PARAMETER */
export function checkParameters(target: CallTarget, given: GivenParameter[], context: CallContext): CheckedParameters {
  const { parameters: declared } = target.endpoint
  const body = declared.find(({ isBody }) => isBody)
  const flat = given.flatMap((parameter) => (parameter.name === body?.name ? [parameter] : repeated(parameter)))
  if (flat.length > PARAMETERS_MAX) throw invalidParameter(undefined, `at most ${PARAMETERS_MAX} may be sent`)
  for (const { name, value } of flat) checkHoldsNoKey(name, value)
  const schemas = new Map(declared.map(({ name, schema }) => [name, schema]))
  const undeclared = flat.filter(({ name }) => !schemas.has(name))
  checkMayBeUndeclared(target.endpoint, body, undeclared)
  const extra = readUndeclared(target.api, target.endpoint, undeclared)
  const values = new Map<string, unknown>()
  for (const { name, value } of flat) {
    if (schemas.get(name)?.items && name !== body?.name) values.set(name, [...[values.get(name) ?? []].flat(), value])
    else if (values.has(name)) throw invalidParameter(name, 'it is given more than once')
    else if (schemas.has(name)) values.set(name, value)
  }
  const parameters = readDeclared(declared, values, extra)
  if (body) checkBodySize(target.endpoint, parameters[body.name])
  return { parameters: complete(target, { parameters, extra }, context), extra }
}

/** A list is its items one after another. */
function repeated({ name, value }: GivenParameter): GivenParameter[] {
  if (!Array.isArray(value)) return [{ name, value }]
  return value.map((item, index) => ({ name, value: spelledNumber(value, index) ?? item }))
}

/**
 * Models write the members of a body beside it, and what a write does must be what its document
 * says.
 */
function checkMayBeUndeclared(
  { endpoint, parameters }: ApiEndpoint,
  body: ApiParameter | undefined,
  [given]: GivenParameter[],
): void {
  if (!given) return
  if (body && Object.hasOwn(Object(Reflect.get(body.schema, 'properties')), given.name)) {
    throw invalidParameter(given.name, 'it is a member of the body: put it into body')
  }
  if ((endpoint.effect ?? 'read') === 'read') return
  const names = parameters.map(({ name }) => name).join(', ') || 'none'
  throw invalidParameter(given.name, `a call that changes something takes declared parameters alone: ${names}`)
}

function checkBodySize({ endpoint: { bodyBytesMax = 0 } }: ApiEndpoint, body: unknown): void {
  const bytes = body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body))
  if (bytes > bodyBytesMax) throw invalidParameter('body', `it has ${bytes} bytes, and ${bodyBytesMax} is the most`)
}

function readDeclared(
  declared: ApiEndpoint['parameters'],
  values: Map<string, unknown>,
  extra: CheckedParameters['extra'],
): Record<string, unknown> {
  const parameters: Record<string, unknown> = {}
  for (const parameter of declared) {
    const { name, schema, required, isBody, validator } = parameter
    const given = values.get(name)
    const value = values.has(name) ? (isBody ? given : toType(schema, given)) : schema.default
    if (value === undefined) {
      if (values.has(name)) throw invalidParameter(name, expectation(schema, true))
      if (required) throw missingParameter(declared, parameter, extra)
      continue
    }
    if (!validator.Check(value)) throw invalidParameter(name, misfit(parameter, value))
    parameters[name] = value
  }
  return parameters
}

/** Of a JSON object the first thing that does not fit, of a plain value all that it must be. */
function misfit({ schema, validator }: ApiParameter, value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return expectation(schema, true)
  const [, [first]] = validator.Errors(value)
  return `${first?.instancePath || 'it'} ${first?.message ?? 'does not fit'}`
}

function missingParameter(
  declared: ApiEndpoint['parameters'],
  { name: missing, schema }: ApiParameter,
  extra: CheckedParameters['extra'],
): GatewayError {
  const names = declared.map(({ name }) => name)
  const misspelt = extra.map(([name]) => name).find((name) => isName(name) && nearestName(name, names) === missing)
  const words = expectation(schema, false)
  return invalidParameter(missing, misspelt ? `${words}; ${misspelt} is not known, did you mean ${missing}?` : words)
}

/** Completes the parameters by the endpoint's own rules, and checks the requests that they make. */
function complete(
  { api, endpoint: { endpoint } }: CallTarget,
  { parameters, extra }: CheckedParameters,
  context: CallContext,
): Record<string, unknown> {
  try {
    const completed = endpoint.complete?.(parameters, context) ?? parameters
    for (const request of [endpoint.request(completed, context)].flat()) {
      checkOverridesNothing(extra, request)
      const { path } = requestTarget(api.baseUrl, request, extra)
      if (REQUEST_LINE_BYTES_FIXED + path.length > REQUEST_LINE_BYTES_MAX) {
        throw invalidParameter(undefined, `the request to the upstream would exceed ${REQUEST_LINE_BYTES_MAX} bytes`)
      }
    }
    return completed
  } catch (error) {
    if (error instanceof InvalidParameter) throw invalidParameter(error.parameter, error.reason)
    throw error
  }
}

/**
 * `52.52`, `.5`, `52.`, `5e-7`: no plus sign, leading zeros, hexadecimal or more digits than a
 * double holds.
 */
const DECIMAL = /^-?((0|[1-9]\d{0,15})(\.\d{0,30})?|\.\d{1,30})(e[-+]?\d{1,2})?$/i

/** `.5` and `52.` are no JSON. */
function isHeldDecimal(text: string): boolean {
  return DECIMAL.test(text) && readingOf(text.replace(/^-?(?=\.)/, '$&0').replace(/\.(?!\d)/, '')) !== 'another-number'
}

/**
 * Undefined for a whole number whose neighbour has the same double. Adding zero turns -0 into 0,
 * which JSON and query strings would show.
 */
function heldNumber(value: number): number | undefined {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value + 0
}

/** Undefined when it does not fit the type. */
function toType(schema: ParameterSchema, value: unknown): unknown {
  const { items } = schema
  if (items && Array.isArray(value)) return value.map((item) => toType(items, item) ?? item)
  switch (schema.type) {
    case 'number':
    case 'integer':
      if (typeof value === 'number') return heldNumber(value)
      return typeof value === 'string' && isHeldDecimal(value) ? heldNumber(Number(value)) : undefined
    case 'boolean':
      if (typeof value === 'boolean') return value
      return value === 'true' ? true : value === 'false' ? false : undefined
    default:
      if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
      return typeof value === 'string' ? value : undefined
  }
}
