import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isLocalAddress } from './http.ts'

/** An OpenID Connect provider, and the gateway's credentials as its client. */
export interface OidcProvider {
  issuer: URL
  /** The provider's name on buttons. */
  name: string
  clientId: string
  clientSecret: string
}

/**
 * The provider for operators, and for accounts if OIDC_ACCOUNTS is on; undefined if none is set.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export function readOidcProvider(read: EnvironmentReader): OidcProvider | undefined {
  const issuer = read.text('OIDC_ISSUER', '')
  if (issuer === '') {
    read.refuseWithout('OIDC_ISSUER', ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_NAME'])
    return undefined
  }
  if (!URL.canParse(issuer) || !(issuer.startsWith('https:') || (issuer.startsWith('http:') && isLocalAddress(issuer))))
    throw new ConfigError('OIDC_ISSUER must be an https: address')
  return {
    issuer: new URL(issuer),
    name: read.text('OIDC_NAME', new URL(issuer).hostname),
    clientId: read.required('OIDC_CLIENT_ID', 'the client id that the OIDC provider gave the gateway'),
    clientSecret: read.required('OIDC_CLIENT_SECRET', 'the client secret that the OIDC provider gave the gateway'),
  }
}

/** Whether accounts sign in at the provider too. */
export function isOidcForAccounts(read: EnvironmentReader): boolean {
  return read.choice('OIDC_ACCOUNTS', ['on', 'off'], 'off') === 'on'
}

/**
 * The provider at which accounts sign in; undefined if accounts have only passwords.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export function readAccountsProvider(read: EnvironmentReader, baseUrl: string): OidcProvider | undefined {
  if (!isOidcForAccounts(read)) return undefined
  const provider = readOidcProvider(read)
  if (!provider) throw new ConfigError('OIDC_ISSUER is required if OIDC_ACCOUNTS is on')
  // The provider sends people back to this address with a code, so it must be protected.
  if (!baseUrl.startsWith('https:') && !isLocalAddress(baseUrl))
    throw new ConfigError('BASE_URL must be an https: address if OIDC_ACCOUNTS is on')
  return provider
}
