import { type ClientMetadata, errors, type ResponseType } from 'oidc-provider'
import { isWellFormed } from '../http/well-formed.ts'
import { hasOwnScheme } from './redirect-words.ts'

/** How applications sign in here: by a code, and again by a refresh token. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token']
export const RESPONSE_TYPES: ResponseType[] = ['code']

/**
 * What is not looked at here. Scopes are the same for all, and clients register those of other services (`claudeai`, `openid
 * email profile`). Contacts may be any text (RFC 7591, 2), and the library takes addresses of mail alone. ID tokens, which
 * no route here takes, are signed in one way.
 */
const UNUSED = ['scope', 'contacts', 'id_token_signed_response_alg'] as const

/**
 * Replaces what an application registers and need not be refused for (RFC 7591, 2). The answer to the registration says
 * what holds. Ways of signing in that this server does not have are left out beside those that it has; empty members are
 * taken as absent ones.
 *
 * @throws InvalidClientMetadata for a text that Postgres does not take
 */
export function adaptMetadata(metadata: ClientMetadata): void {
  for (const value of Object.values(metadata))
    if (typeof value === 'string' && !isWellFormed(value))
      throw new errors.InvalidClientMetadata('texts must be Unicode without NUL')
  for (const name of UNUSED) delete metadata[name]
  // Programs that send every member they know write so what they have no value for.
  for (const [name, value] of Object.entries(metadata)) if (value === '' || value === null) delete metadata[name]
  keepSupported(metadata, 'grant_types', GRANT_TYPES)
  keepSupported(metadata, 'response_types', RESPONSE_TYPES)
}

/** A list without one value that is supported stays as it is: the library refuses it. */
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
 * Codes go over HTTPS, to this machine, or to an application by its own scheme. Whether an application is one of the
 * user's machine is read from its addresses: some say nothing of it, or that they are a web application.
 *
 * @throws InvalidRedirectUri
 */
export function checkRedirects(metadata: ClientMetadata): void {
  const { redirect_uris: given } = metadata
  // The library refuses what is no list.
  if (!Array.isArray(given)) return
  const addresses = given.map((address) => URL.parse(String(address)))
  for (const address of addresses) {
    if (!address) throw new errors.InvalidRedirectUri('redirect_uris must be absolute addresses')
    if (address.protocol === 'http:' && !isLoopback(address)) {
      throw new errors.InvalidRedirectUri('redirect_uris must be https, or of this machine')
    }
  }
  // A program on the user's machine takes what port is free, or has a scheme of its own (RFC 8252, 7.1 and 7.3).
  const isOfThisMachine = addresses.some(
    (address) => address && (address.protocol === 'http:' || hasOwnScheme(address)),
  )
  // The library takes these for web applications alone.
  const hasLocalHttps = addresses.some((address) => address?.protocol === 'https:' && isLoopback(address))
  if (isOfThisMachine && !hasLocalHttps) metadata.application_type = 'native'
}

function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.test(hostname)
}
