import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isLocalAddress } from './http.ts'
import { type OidcProvider, readAccountsProvider } from './oidc-provider.ts'

/**
 * Under which condition an account that signs up can make live calls: see the configuration page of
 * the operators' book.
 */
export type SignupPolicy = 'open' | 'verified' | 'approval' | 'closed'

/** How accounts come to be and are reached. */
export interface AccountsConfig {
  signup: SignupPolicy
  /** Address of the mail server; nothing is mailed without one. */
  smtpUrl: string | undefined
  /** Sender of what is mailed. */
  mailFrom: string
  /** Whether agents can sign in by OAuth. */
  isOauthOn: boolean
  /** How long an access token of an application is good for, hours. */
  accessTokenHours: number
  /** The provider at which accounts sign in beside their passwords. */
  oidc: OidcProvider | undefined
}

const SIGNUP_POLICIES: readonly SignupPolicy[] = ['open', 'verified', 'approval', 'closed']

/**
 * Only an API node sends mails and signs people in. Other processes run without the secrets for it.
 *
 * @throws ConfigError naming the variable that is missing or cannot be used
 */
export function readAccounts(read: EnvironmentReader, baseUrl: string, isApiNode: boolean): AccountsConfig {
  const isSafe = baseUrl.startsWith('https:') || isLocalAddress(baseUrl)
  const signup = read.choice('SIGNUP', SIGNUP_POLICIES, 'open')
  const smtpUrl = readSmtpUrl(read)
  if (isApiNode && signup === 'verified' && smtpUrl === undefined) {
    throw new ConfigError('SMTP_URL is required if SIGNUP is verified, because addresses are verified by mail')
  }
  return {
    signup,
    smtpUrl,
    mailFrom: read.text('SMTP_FROM', `agent-api-gateway@${new URL(baseUrl).hostname}`),
    isOauthOn: read.choice('OAUTH', ['on', 'off'], isSafe ? 'on' : 'off') === 'on',
    accessTokenHours: read.integer('OAUTH_ACCESS_TOKEN_HOURS', 8, [1, 24]),
    oidc: isApiNode ? readAccountsProvider(read, baseUrl) : undefined,
  }
}

function readSmtpUrl(read: EnvironmentReader): string | undefined {
  const value = read.text('SMTP_URL', '')
  if (value === '') return undefined
  if (!/^smtps?:\/\/[^/]/.test(value) || !URL.canParse(value)) {
    throw new ConfigError('SMTP_URL must be an smtp: or smtps: address, smtp://user:password@host:587')
  }
  return value
}
