import { type ClientMetadata, errors, type ResponseType } from 'oidc-provider'
import { oneLine } from '../accounts/foreign-text.ts'
import { isWellFormed } from '../http/request/well-formed.ts'
import { hasOwnScheme, isRedirectScheme } from './redirect-words.ts'

/** How applications sign in here: by a code, and again by a refresh token. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token']
export const RESPONSE_TYPES: ResponseType[] = ['code']

/**
 * The members that this server uses, and the members that it gives out itself. The library gets no
 * other: it would fetch `sector_identifier_uri`, hold clients to keys and ages that nothing here
 * asks for, and refuse scopes of other services and contacts that are no addresses of mail, which
 * clients register everywhere (RFC 7591, 2).
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

/** Addresses for people. They are shown nowhere, but a wrong address is its maker's mistake. */
const LINKS = ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'] as const

/**
 * Replaces what an application registers and need not be refused for (RFC 7591, 2). The answer to
 * the registration says what holds. Ways of signing in that this server does not have are left out
 * beside the members that it has; empty members are taken as absent.
 *
 * @throws InvalidClientMetadata if Postgres does not accept a text, or an address is no web address
 */
export function adaptMetadata(metadata: ClientMetadata): void {
  for (const value of Object.values(metadata))
    if (typeof value === 'string' && !isWellFormed(value))
      throw new errors.InvalidClientMetadata('texts must be Unicode without NUL')
  // Programs that send every member they know write so what they have no value for.
  for (const [name, value] of Object.entries(metadata)) if (value === '' || value === null) delete metadata[name]
  for (const name of LINKS) {
    const given: unknown = metadata[name]
    if (given !== undefined && !/^https?:$/.test(parsedAddress(given)?.protocol ?? ''))
      throw new errors.InvalidClientMetadata(`${name} must be an address of the web`)
  }
  for (const name of Object.keys(metadata)) if (!USED.has(name)) delete metadata[name]
  const { client_name: name, software_id: software } = metadata
  // The library checks the members that it knows.
  if (software !== undefined && typeof software !== 'string')
    throw new errors.InvalidClientMetadata('software_id must be a text')
  if (typeof name === 'string') metadata.client_name = oneLine(name)
  if (metadata.client_name === '') delete metadata.client_name
  keepSupported(metadata, 'grant_types', GRANT_TYPES)
  keepSupported(metadata, 'response_types', RESPONSE_TYPES)
}

/** If a list has no supported value, it stays as it is, and the library refuses it. */
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
 * Codes go over HTTPS, to this machine, or to an application by its own scheme. Whether an
 * application is one of the user's machine is read from its addresses: some say nothing of it, or
 * that they are a web application.
 *
 * @throws CustomOIDCProviderError `invalid_redirect_uri`, naming what is wrong
 */
export function checkRedirects(metadata: ClientMetadata): void {
  const { redirect_uris: given } = metadata
  // The library refuses what is no list.
  if (!Array.isArray(given)) return
  const addresses = given.map(checkedRedirect)
  // A program on the user's machine takes what port is free, or has a scheme of its own (RFC 8252,
  // 7.1 and 7.3).
  const isOfThisMachine = addresses.some((address) => address.protocol === 'http:' || hasOwnScheme(address))
  // The library takes these for web applications alone.
  const hasLocalHttps = addresses.some((address) => address.protocol === 'https:' && isLoopback(address))
  if (isOfThisMachine && !hasLocalHttps) metadata.application_type = 'native'
}

function checkedRedirect(given: unknown): URL {
  const address = parsedAddress(given)
  if (!address) throw invalidRedirect('redirect_uris must be absolute addresses')
  if (address.protocol === 'http:' && !isLoopback(address))
    throw invalidRedirect('redirect_uris must be https, or of this machine')
  if (!isRedirectScheme(address)) {
    const scheme = address.protocol.slice(0, 40)
    throw invalidRedirect(
      `redirect_uris must be https, or of this machine, or begin with a scheme of the application that has a dot, as com.example.app: has; ${scheme} is none of these`,
    )
  }
  // Some readers of addresses drop these, and others take a backslash for a part of a name.
  if (/[\s\\\p{Cc}]/u.test(String(given))) throw invalidRedirect('redirect_uris must have no blanks and no backslashes')
  return address
}

/** JSON may hold anything in place of a text, and not everything can become one. */
function parsedAddress(given: unknown): URL | null {
  return typeof given === 'string' ? URL.parse(given) : null
}

/** The library's own class says the same words whatever is wrong. */
function invalidRedirect(description: string): Error {
  return new errors.CustomOIDCProviderError('invalid_redirect_uri', description)
}

function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.test(hostname)
}
