import { holdsApiKey } from '../accounts/api-key.ts'
import type { ApiEndpoint, ApiParameter, ParameterSchema } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import type { CallContext } from '../catalog/endpoint.ts'
import { exactDecimal, exactNumber } from '../catalog/exact-number.ts'
import { nearestName } from '../catalog/nearest-name.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { expectation, optionsOf } from '../catalog/parameter-words.ts'
import { requestTarget } from '../catalog/request-target.ts'
import type { GatewayError } from '../errors.ts'
import { spelledNumber } from '../http/request/json-body.ts'
import { isName } from '../http/request/violation-words.ts'
import { checkOverridesNothing, invalidParameter, readUndeclared } from './undeclared-parameters.ts'

export interface GivenParameter {
  name: string
  value: unknown
}

/** Declared parameters are typed and completed. The others are kept as given, in their order. */
export interface CheckedParameters {
  parameters: Record<string, unknown>
  extra: [name: string, value: string][]
}

const PARAMETERS_MAX = 100

/** Longest request line, because upstreams refuse longer lines. */
const REQUEST_LINE_BYTES_MAX = 4_096
const REQUEST_LINE_BYTES_FIXED = 'GET  HTTP/1.1\r\n'.length

export interface CallTarget {
  api: Api
  endpoint: ApiEndpoint
}

/**
 * Also checks the request line that the parameters make.
 * @throws GatewayError INVALID_PARAMETER
 */
export function checkParameters(target: CallTarget, given: GivenParameter[], context: CallContext): CheckedParameters {
  const { byName, declaration } = target.endpoint
  const flat: GivenParameter[] = []
  for (const parameter of given) {
    if (Array.isArray(parameter.value) && !byName.get(parameter.name)?.isBody) flat.push(...itemsOf(parameter))
    else flat.push(parameter)
  }
  if (flat.length > PARAMETERS_MAX)
    throw invalidParameter(undefined, `a call may have at most ${PARAMETERS_MAX} parameters`)
  checkHoldNoKey(flat)
  const { values, undeclared } = gather(target.endpoint, flat)
  const extra = undeclared.length === 0 ? [] : readExtra(target, undeclared)
  const parameters = readDeclared(target.endpoint, values, extra)
  if (declaration.bodyBytesMax !== undefined) checkBodySize(declaration.bodyBytesMax, parameters.body)
  try {
    return { parameters: complete(target, { parameters, extra }, context), extra }
  } catch (error) {
    if (!(error instanceof InvalidParameter)) throw error
    // The error of a path does not name the parameter, so it is found here.
    const dots = [...values.values()].find(({ value }) => /^\s*\.{1,2}\s*$/.test(String(value)))?.name
    throw invalidParameter(values.get(error.parameter ?? '')?.name ?? error.parameter ?? dots, error.reason)
  }
}

/** @throws GatewayError INVALID_PARAMETER */
function checkHoldNoKey(given: GivenParameter[]): void {
  for (const { name, value } of given) {
    if (holdsApiKey(name)) throw invalidParameter(undefined, 'its name holds a key of this service')
    if (holdsApiKey(typeof value === 'object' ? JSON.stringify(value) : String(value)))
      throw invalidParameter(name, 'it holds a key of this service, which is never sent to the upstream')
  }
}

/** A list counts as one parameter for each of its items. */
function itemsOf({ name, value }: GivenParameter): GivenParameter[] {
  const list = value as unknown[]
  return list.map((item, index) => ({ name, value: spelledNumber(list, index) ?? item }))
}

/**
 * What is given for each declared parameter, by its declared name, with the name that the caller
 * used, and what is given besides. From here on an alias makes no difference, so that calls share
 * stored answers.
 *
 * @throws GatewayError INVALID_PARAMETER for a parameter that is given twice
 */
function gather(
  { byName }: ApiEndpoint,
  flat: GivenParameter[],
): { values: Map<string, GivenParameter>; undeclared: GivenParameter[] } {
  const values = new Map<string, GivenParameter>()
  const undeclared: GivenParameter[] = []
  for (const { name, value } of flat) {
    const parameter = byName.get(name)
    if (!parameter) {
      undeclared.push({ name, value })
      continue
    }
    const before = values.get(parameter.name)
    const isList = parameter.schema.items !== undefined && !parameter.isBody
    if (!before) values.set(parameter.name, { name, value: isList ? [value] : value })
    else if (before.name !== name) {
      const [alias, other] = name === parameter.name ? [before.name, name] : [name, before.name]
      throw invalidParameter(alias, `it is another name of ${other}, which is given too: send only one of them`)
    } else if (!isList) throw invalidParameter(name, 'it is given more than once')
    else before.value = [...(before.value as unknown[]), value]
  }
  return { values, undeclared }
}

/**
 * The undeclared parameters as they are forwarded. A member of the body is refused, because
 * language models often write it beside the body. A call that changes something may have none,
 * because its document must say all that it does.
 *
 * @throws GatewayError INVALID_PARAMETER
 */
function readExtra({ api, endpoint }: CallTarget, undeclared: GivenParameter[]): CheckedParameters['extra'] {
  const { declaration, parameters } = endpoint
  const members = parameters.find(({ isBody }) => isBody)?.schema.properties ?? {}
  const misplaced = undeclared.find(({ name }) => Object.hasOwn(members, name))
  if (misplaced) throw invalidParameter(misplaced.name, 'it is a member of the body: put it into body')
  if ((declaration.effect ?? 'read') === 'read') return readUndeclared(api, endpoint, undeclared)
  const names = parameters.map((parameter) => parameter.name).join(', ') || 'none'
  throw invalidParameter(
    undeclared[0]?.name,
    `a call that changes something accepts only declared parameters: ${names}`,
  )
}

function checkBodySize(bodyBytesMax: number, body: unknown): void {
  const bytes = body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body))
  if (bytes > bodyBytesMax)
    throw invalidParameter('body', `it has ${bytes} bytes, and at most ${bodyBytesMax} are allowed`)
}

function readDeclared(
  endpoint: ApiEndpoint,
  values: ReadonlyMap<string, GivenParameter>,
  extra: CheckedParameters['extra'],
): Record<string, unknown> {
  const parameters: Record<string, unknown> = {}
  for (const parameter of endpoint.parameters) {
    const { name, schema, required, isBody, validator } = parameter
    const given = values.get(name)
    const value = given ? (isBody ? given.value : toType(schema, given.value)) : schema.default
    if (value === undefined) {
      if (given) throw invalidParameter(given.name, expectation(schema, true))
      if (required) throw missingParameter(endpoint, parameter, extra)
      continue
    }
    const isLong = schema.format === 'int64' && typeof value === 'string'
    if (!isLong && !validator.Check(value))
      throw invalidParameter(given?.name ?? name, misfit(endpoint, parameter, value))
    parameters[name] = value
  }
  return parameters
}

/**
 * Names the first thing in a JSON object that does not fit. For a plain value, says everything that
 * it must be.
 */
function misfit(endpoint: ApiEndpoint, { name, schema, validator }: ApiParameter, value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return expectation(schema, true) + exampleOf(endpoint, name, schema)
  }
  const [, [first]] = validator.Errors(value)
  return `${first?.instancePath || 'it'} ${first?.message ?? 'does not match the schema'}`
}

/** An example for a text, such as `, such as USD`. For a number the bounds are enough. */
function exampleOf({ declaration }: ApiEndpoint, name: string, schema: ParameterSchema): string {
  const value = declaration.example.parameters[name]
  const isPlain = typeof value === 'string' && value !== '' && value.length <= EXAMPLE_CHARACTERS_MAX
  return isPlain && optionsOf(schema) === undefined ? `, such as ${value}` : ''
}

const EXAMPLE_CHARACTERS_MAX = 40

function missingParameter(
  endpoint: ApiEndpoint,
  missing: ApiParameter,
  extra: CheckedParameters['extra'],
): GatewayError {
  const { byName } = endpoint
  const { name, aliases, schema } = missing
  const words = [expectation(schema, false) + exampleOf(endpoint, name, schema)]
  if (aliases.length > 0) words.push(`it may also be given as ${aliases.join(' or ')}`)
  const names = [...byName.keys()]
  for (const [misspelt] of extra) {
    const meant = isName(misspelt) ? nearestName(misspelt, names) : undefined
    if (meant === undefined || byName.get(meant) !== missing) continue
    words.push(`${misspelt} is not known; did you mean ${meant}?`)
    break
  }
  return invalidParameter(name, words.join('; '))
}

/**
 * Completes the parameters by the endpoint's own rules, and checks the requests that they make.
 *
 * @throws InvalidParameter
 * @throws GatewayError INVALID_PARAMETER
 */
function complete(
  { api, endpoint: { declaration } }: CallTarget,
  { parameters, extra }: CheckedParameters,
  context: CallContext,
): Record<string, unknown> {
  const completed = declaration.complete?.(parameters, context) ?? parameters
  for (const request of [declaration.request(completed, context)].flat()) {
    if (extra.length > 0) checkOverridesNothing(extra, request)
    const { path } = requestTarget(api.baseUrl, request, extra)
    if (REQUEST_LINE_BYTES_FIXED + path.length > REQUEST_LINE_BYTES_MAX) {
      throw invalidParameter(undefined, `the request to the upstream would exceed ${REQUEST_LINE_BYTES_MAX} bytes`)
    }
  }
  return completed
}

/** A number of 64 bits that no double holds. It stays a text, and goes out with all its digits. */
const LONG = /^[1-9]\d{15,19}$/

/** Undefined if the value does not fit the type. */
function toType(schema: ParameterSchema, value: unknown): unknown {
  const { items } = schema
  if (items && Array.isArray(value)) return value.map((item) => toType(items, item) ?? item)
  switch (schema.type) {
    case 'number':
    case 'integer':
      if (typeof value === 'number') return exactNumber(value)
      if (typeof value !== 'string') return undefined
      return exactDecimal(value) ?? (schema.format === 'int64' && LONG.test(value) ? value : undefined)
    case 'boolean':
      if (typeof value === 'boolean') return value
      return value === 'true' ? true : value === 'false' ? false : undefined
    default:
      if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
      return typeof value === 'string' ? value : undefined
  }
}
