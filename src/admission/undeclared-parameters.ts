import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { isParameterName } from '../catalog/parameter-values.ts'
import type { UpstreamRequest } from '../catalog/upstream-request.ts'
import { GatewayError } from '../errors.ts'
import { sentence } from '../http/request/violation-words.ts'

const NAMES_MAX = 20
const QUERY_BYTES_MAX = 2_048

/** Names of credentials at any upstream. An upstream's file reserves further names. */
const CREDENTIAL_NAMES = new Set(
  ['x-api-key', 'api-key', 'api_key', 'apikey', 'access_token', 'authorization', 'client_secret'].map(comparableName),
)

/**
 * The undeclared parameters as they are forwarded, in the caller's order.
 * @throws GatewayError INVALID_PARAMETER for a name that is declared in another spelling, reserved,
 *   used for credentials or ambiguous, or if a limit is exceeded
 */
export function readUndeclared(
  { upstream }: Api,
  { byName }: ApiEndpoint,
  given: { name: string; value: unknown }[],
): [name: string, value: string][] {
  const spellings = new Map([...byName.keys()].map((name) => [comparableName(name), name]))
  const reserved = new Set(
    [...(upstream.reservedParameters ?? []), upstream.credential?.name ?? ''].map(comparableName),
  )
  const names = new Set<string>()
  const extra = given.map(({ name, value }): [string, string] => {
    const comparable = comparableName(name)
    checkName(name, comparable)
    const spelling = spellings.get(comparable)
    if (spelling !== undefined)
      throw invalidParameter(spelling, `its name is spelled ${spelling}${isParameterName(name) ? `, not ${name}` : ''}`)
    if (CREDENTIAL_NAMES.has(comparable)) throw invalidParameter(name, 'a credential is never sent to the upstream')
    if (reserved.has(comparable)) throw invalidParameter(name, 'it is reserved')
    names.add(comparable)
    return [name, forwardedText(name, value)]
  })
  if (names.size > NAMES_MAX)
    throw invalidParameter(undefined, `at most ${NAMES_MAX} undeclared parameters may be sent`)
  if (new URLSearchParams(extra).toString().length > QUERY_BYTES_MAX) {
    throw invalidParameter(
      undefined,
      `undeclared parameters may take at most ${QUERY_BYTES_MAX} bytes of the query string`,
    )
  }
  return extra
}

/**
 * @throws GatewayError INVALID_PARAMETER if the request to the upstream itself sets a
 *   parameter of one of the names
 */
export function checkOverridesNothing(extra: [name: string, value: string][], { query = {} }: UpstreamRequest): void {
  const set = new Set(Object.keys(query).map(comparableName))
  const taken = extra.find(([name]) => set.has(comparableName(name)))
  if (taken) throw invalidParameter(taken[0], 'the gateway sets it')
}

/**
 * A name as the most lenient upstream would read it: without letter case, without brackets and what
 * follows them (`limit[]` is `limit`), with `a.b` as `a_b` (as PHP does), and with `-` as `_`.
 */
function comparableName(name: string): string {
  const bracket = name.indexOf('[')
  const base = bracket < 0 ? name : name.slice(0, bracket)
  return base.trim().toLowerCase().replace(/[ .-]/g, '_')
}

function checkName(name: string, comparable: string): void {
  // Some upstreams remove blanks, and would then read a declared or reserved name.
  if (name !== name.trim()) throw invalidParameter(undefined, 'its name begins or ends with a space')
  if (comparable === '') throw invalidParameter(undefined, 'its name is empty')
  // PHP reads `a[b` as `a_b`.
  if (name.includes('[') && !name.endsWith(']'))
    throw invalidParameter(undefined, 'the brackets of its name are not closed')
}

function forwardedText(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (Number.isFinite(value) || typeof value === 'boolean') return String(value)
  throw invalidParameter(name, 'it must be a string, a number, a boolean or a list of these')
}

export function invalidParameter(parameter: string | undefined, reason: string): GatewayError {
  const name = parameter !== undefined && isParameterName(parameter) ? parameter : undefined
  return new GatewayError('INVALID_PARAMETER', {
    message: sentence(`${name === undefined ? 'A parameter' : `Parameter ${name}`} is invalid: ${reason}`),
    tokens: name === undefined ? {} : { param: name },
  })
}
