import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isOidcForAccounts, type OidcProvider, readOidcProvider } from './oidc-provider.ts'

/** The headers with which an access proxy in front of the console says who sends a request. */
export interface TrustedHeader {
  /** Names in lower case. */
  user: string
  groups: string
  /**
   * What the proxy sends in `X-Trusted-Header-Secret`, so that nobody else in its network is
   * believed.
   */
  secret: string
}

/** How people get into the console besides OPERATOR_TOKEN. */
export interface OperatorAccess {
  oidc: OidcProvider | undefined
  trustedHeader: TrustedHeader | undefined
  /** The claim of an ID token, or of the user info, that lists the groups of a person. */
  groupsClaim: string
  /** Groups whose members may do everything, and groups whose members may read. */
  operatorGroups: string[]
  viewerGroups: string[]
  /** Whether the log-in form takes OPERATOR_TOKEN; as bearer it counts in any case. */
  isTokenLoginOn: boolean
}

/** Of a process that is no console. */
export const NO_ACCESS: OperatorAccess = {
  ...{ oidc: undefined, trustedHeader: undefined, isTokenLoginOn: true },
  ...{ groupsClaim: 'groups', operatorGroups: [], viewerGroups: [] },
}

/** @throws ConfigError naming the variable that is missing or cannot be used */
export function readOperatorAccess(read: EnvironmentReader, trustProxy: string[]): OperatorAccess {
  const groups = {
    operatorGroups: read.list('OIDC_OPERATOR_GROUPS', () => true),
    viewerGroups: read.list('OIDC_VIEWER_GROUPS', () => true),
  }
  const hasGroups = groups.operatorGroups.length + groups.viewerGroups.length > 0
  const access: OperatorAccess = {
    // A provider for accounts alone lets nobody into the console.
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
  if (!isOpen && !access.isTokenLoginOn) {
    throw new ConfigError('OPERATOR_TOKEN_LOGIN must be on if neither OIDC_ISSUER nor TRUSTED_USER_HEADER is set')
  }
  return access
}

function readTrustedHeader(read: EnvironmentReader, trustProxy: string[]): TrustedHeader | undefined {
  const user = readHeaderName(read, 'TRUSTED_USER_HEADER')
  if (user === undefined) return undefined
  const groups = readHeaderName(read, 'TRUSTED_GROUPS_HEADER')
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
