import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isOidcForAccounts, type OidcProvider, readOidcProvider } from './oidc-provider.ts'

/**
 * The headers in which an access proxy in front of the console names the person who sent a request.
 */
export interface TrustedHeader {
  /** Names in lower case. */
  user: string
  groups: string
  /**
   * The value of `X-Trusted-Header-Secret` that the proxy sends. Requests without it are not
   * trusted, even from the proxy's network.
   */
  secret: string
}

/** How people sign in to the console besides OPERATOR_TOKEN. */
export interface OperatorAccess {
  oidc: OidcProvider | undefined
  trustedHeader: TrustedHeader | undefined
  /** The claim of an ID token, or of the user info, that lists a person's groups. */
  groupsClaim: string
  /** Groups whose members may do everything, and groups whose members may only read. */
  operatorGroups: string[]
  viewerGroups: string[]
  /**
   * Whether the log-in form accepts OPERATOR_TOKEN. The operator API accepts it as a bearer token
   * in any case.
   */
  isTokenLoginOn: boolean
}

/** For a process that does not serve the console. */
export const NO_ACCESS: OperatorAccess = {
  ...{ oidc: undefined, trustedHeader: undefined, isTokenLoginOn: true },
  ...{ groupsClaim: 'groups', operatorGroups: [], viewerGroups: [] },
}

/** @throws ConfigError that names the variable that is missing or cannot be used */
export function readOperatorAccess(read: EnvironmentReader, trustProxy: string[]): OperatorAccess {
  const groups = {
    operatorGroups: read.list('OIDC_OPERATOR_GROUPS'),
    viewerGroups: read.list('OIDC_VIEWER_GROUPS'),
  }
  const hasGroups = groups.operatorGroups.length + groups.viewerGroups.length > 0
  const access: OperatorAccess = {
    // If the provider is for accounts only, it gives nobody access to the console.
    oidc: hasGroups || !isOidcForAccounts(read) ? readOidcProvider(read) : undefined,
    trustedHeader: readTrustedHeader(read, trustProxy),
    groupsClaim: read.text('OIDC_GROUPS_CLAIM', 'groups'),
    ...groups,
    isTokenLoginOn: read.choice('OPERATOR_TOKEN_LOGIN', ['on', 'off'], 'on') === 'on',
  }
  const isOpen = access.oidc !== undefined || access.trustedHeader !== undefined
  if (isOpen && !hasGroups) {
    throw new ConfigError('OIDC_OPERATOR_GROUPS is required: the groups whose members may use the console')
  }
  if (!isOpen) read.refuseWithout('OIDC_ISSUER or TRUSTED_USER_HEADER', ['OIDC_OPERATOR_GROUPS', 'OIDC_VIEWER_GROUPS'])
  if (access.oidc === undefined) {
    read.refuseWithout(hasGroups ? 'OIDC_ISSUER' : 'OIDC_OPERATOR_GROUPS', ['OIDC_GROUPS_CLAIM'])
  }
  if (!isOpen && !access.isTokenLoginOn) {
    throw new ConfigError('OPERATOR_TOKEN_LOGIN must be on if neither OIDC_ISSUER nor TRUSTED_USER_HEADER is set')
  }
  return access
}

function readTrustedHeader(read: EnvironmentReader, trustProxy: string[]): TrustedHeader | undefined {
  const user = readHeaderName(read, 'TRUSTED_USER_HEADER')
  const groups = readHeaderName(read, 'TRUSTED_GROUPS_HEADER')
  if (user === undefined) {
    read.refuseWithout('TRUSTED_USER_HEADER', ['TRUSTED_GROUPS_HEADER', 'TRUSTED_HEADER_SECRET'])
    return undefined
  }
  if (groups === undefined) throw new ConfigError('TRUSTED_GROUPS_HEADER is required if TRUSTED_USER_HEADER is set')
  if (trustProxy.length === 0) {
    throw new ConfigError('TRUST_PROXY is required if TRUSTED_USER_HEADER is set: the address of the access proxy')
  }
  return { user, groups, secret: read.token('TRUSTED_HEADER_SECRET') }
}

function readHeaderName(read: EnvironmentReader, name: string): string | undefined {
  const value = read.text(name, '').toLowerCase()
  if (value === '') return undefined
  if (/^[a-z0-9-]{1,64}$/.test(value)) return value
  throw new ConfigError(`${name} must be the name of a header`)
}
