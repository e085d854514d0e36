import { type ClientMetadata, errors, type ResponseType } from 'oidc-provider'
import { oneLine } from '../accounts/foreign-text.ts'
import { isWellFormed } from '../http/request/well-formed.ts'
import { hasOwnScheme, isRedirectScheme } from './redirect-words.ts'

/** Grant types that clients may use: a code, and a refresh token. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token']
export const RESPONSE_TYPES: ResponseType[] = ['code']

/**
 * The metadata members that this server uses or returns. Other members are not passed to the
 * library: it would fetch `sector_identifier_uri`, enforce keys and ages that nothing here needs,
 * and refuse scopes of other services and contacts that are not email addresses, which clients
 * register everywhere (RFC 7591, 2).
 */
const USED = new Set([
  'client_id',
  'client_id_issued_at',
  'client_secret',
  'client_secret_expires_at',
  'client_name',
  'redirect_uris',
  'grant_types',
  'response_types',
  'token_endpoint_auth_method',
  'application_type',
  'software_id',
])

/**
 * Addresses for people. No page shows them, but a wrong address is refused as a mistake of the
 * application's maker.
 */
const LINKS = ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'] as const

/**
 * Replaces metadata values for which a registration need not be refused (RFC 7591, 2). The answer
 * to the registration shows the values that hold. Unsupported entries of a list are dropped if a
 * supported entry is left. Empty members count as absent.
 *
 * @throws InvalidClientMetadata if Postgres does not accept a text, or an address is not a web
 *   address
 */
export function adaptMetadata(metadata: ClientMetadata): void {
  for (const value of Object.values(metadata))
    if (typeof value === 'string' && !isWellFormed(value))
      throw new errors.InvalidClientMetadata('strings must be Unicode without NUL')
  // Some programs send every member they know, with an empty value if they have none.
  for (const [name, value] of Object.entries(metadata)) if (value === '' || value === null) delete metadata[name]
  for (const name of LINKS) {
    const given: unknown = metadata[name]
    if (given !== undefined && !/^https?:$/.test(parsedAddress(given)?.protocol ?? ''))
      throw new errors.InvalidClientMetadata(`${name} must be an http: or https: address`)
  }
  for (const name of Object.keys(metadata)) if (!USED.has(name)) delete metadata[name]
  const { client_name: name, software_id: software } = metadata
  // The library checks the other members.
  if (software !== undefined && typeof software !== 'string')
    throw new errors.InvalidClientMetadata('software_id must be a string')
  if (typeof name === 'string') metadata.client_name = oneLine(name)
  if (metadata.client_name === '') delete metadata.client_name
  keepSupported(metadata, 'grant_types', GRANT_TYPES)
  keepSupported(metadata, 'response_types', RESPONSE_TYPES)
}

/**
 * Keeps the supported values of a list. If there is none, the list stays as it is and the library
 * refuses it.
 */
function keepSupported(
  metadata: ClientMetadata,
  name: 'grant_types' | 'response_types',
  supported: readonly string[],
): void {
  const given: unknown = metadata[name]
  if (!Array.isArray(given)) return
  const kept = given.filter((value) => supported.includes(value))
  if (kept.length > 0) Object.assign(metadata, { [name]: kept })
}

const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])$/

/**
 * Codes may go to HTTPS addresses, to this machine, or to an application through its own scheme.
 * The addresses show whether the application runs on the user's machine, because some applications
 * do not say so, or call themselves web applications.
 *
 * @throws CustomOIDCProviderError `invalid_redirect_uri`, which names the fault
 */
export function checkRedirects(metadata: ClientMetadata): void {
  const { redirect_uris: given } = metadata
  // If the value is not a list, the library refuses it.
  if (!Array.isArray(given)) return
  const addresses = given.map(checkedRedirect)
  // A program on the user's machine listens on any free port, or has a scheme of its own (RFC 8252,
  // 7.1 and 7.3).
  const isOfThisMachine = addresses.some((address) => address.protocol === 'http:' || hasOwnScheme(address))
  // The library accepts local HTTPS addresses for web applications only.
  const hasLocalHttps = addresses.some((address) => address.protocol === 'https:' && isLoopback(address))
  if (isOfThisMachine && !hasLocalHttps) metadata.application_type = 'native'
}

function checkedRedirect(given: unknown): URL {
  const address = parsedAddress(given)
  if (!address) throw invalidRedirect('redirect_uris must be absolute addresses')
  if (address.protocol === 'http:' && !isLoopback(address))
    throw invalidRedirect('redirect_uris must be https: addresses, or addresses of this machine')
  if (!isRedirectScheme(address)) {
    const scheme = address.protocol.slice(0, 40)
    throw invalidRedirect(
      `redirect_uris must be https: addresses, addresses of this machine, or addresses with a scheme of the application that is a reversed domain name, such as com.example.app:; ${scheme} is none of these`,
    )
  }
  // Some URL parsers drop blanks, and others read a backslash as part of a name.
  if (/[\s\\\p{Cc}]/u.test(String(given))) throw invalidRedirect('redirect_uris must have no blanks and no backslashes')
  return address
}

/**
 * Parses an address. JSON may hold any value in its place, and some values cannot become a string.
 */
function parsedAddress(given: unknown): URL | null {
  return typeof given === 'string' ? URL.parse(given) : null
}

/** An error with our description. The library's own class has one fixed description. */
function invalidRedirect(description: string): Error {
  return new errors.CustomOIDCProviderError('invalid_redirect_uri', description)
}

function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.test(hostname)
}
