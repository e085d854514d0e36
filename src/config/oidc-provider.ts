import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isLocalAddress } from './http.ts'

/** An OpenID Connect provider, and the client that the gateway is at this provider. */
export interface OidcProvider {
  issuer: URL
  /** What the button of a page calls it. */
  name: string
  clientId: string
  clientSecret: string
}

/**
 * The provider of operators, and of accounts if OIDC_ACCOUNTS is on; undefined if none is set.
 *
 * @throws ConfigError naming the variable that is missing or cannot be used
 */
export function readOidcProvider(read: EnvironmentReader): OidcProvider | undefined {
  const issuer = read.text('OIDC_ISSUER', '')
  if (issuer === '') return undefined
  if (!URL.canParse(issuer) || !(issuer.startsWith('https:') || (issuer.startsWith('http:') && isLocalAddress(issuer))))
    throw new ConfigError('OIDC_ISSUER must be an https: address')
  return {
    issuer: new URL(issuer),
    name: read.text('OIDC_NAME', new URL(issuer).hostname),
    clientId: read.required('OIDC_CLIENT_ID', 'as what the OIDC provider knows the gateway'),
    clientSecret: read.required('OIDC_CLIENT_SECRET', 'the secret that the OIDC provider gave the gateway'),
  }
}

/** Whether accounts sign in by the provider too. */
export function isOidcForAccounts(read: EnvironmentReader): boolean {
  return read.choice('OIDC_ACCOUNTS', ['on', 'off'], 'off') === 'on'
}

/**
 * The provider at which accounts sign in; undefined if they have passwords alone.
 *
 * @throws ConfigError naming the variable that is missing or cannot be used
 */
export function readAccountsProvider(read: EnvironmentReader, baseUrl: string): OidcProvider | undefined {
  if (!isOidcForAccounts(read)) return undefined
  const provider = readOidcProvider(read)
  if (!provider) throw new ConfigError('OIDC_ISSUER is required if OIDC_ACCOUNTS is on')
  // The provider sends people back to it with a code.
  if (!baseUrl.startsWith('https:') && !isLocalAddress(baseUrl))
    throw new ConfigError('BASE_URL must be an https: address if OIDC_ACCOUNTS is on')
  return provider
}
