import { ConfigError, type EnvironmentReader } from './environment-reader.ts'
import { isLocalAddress } from './http.ts'
import { type OidcProvider, readAccountsProvider } from './oidc-provider.ts'

/**
 * When an account that signs up may make live calls. The configuration page of the operators' book
 * explains the values.
 */
export type SignupPolicy = 'open' | 'verified' | 'approval' | 'closed'

/** Settings of sign-up, sign-in and mail. */
export interface AccountsConfig {
  signup: SignupPolicy
  /** Address of the mail server. If undefined, nothing is mailed. */
  smtpUrl: string | undefined
  /** Sender of mails. */
  mailFrom: string
  /** Whether applications and agents can sign in by OAuth. */
  isOauthOn: boolean
  /** Lifetime of an application's access token, hours. */
  accessTokenHours: number
  /** The provider at which accounts can sign in, besides their passwords. */
  oidc: OidcProvider | undefined
}

const SIGNUP_POLICIES: readonly SignupPolicy[] = ['open', 'verified', 'approval', 'closed']

/**
 * Only API nodes send mails and sign people in. Other processes run without the secrets for it.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export function readAccounts(read: EnvironmentReader, baseUrl: string, isApiNode: boolean): AccountsConfig {
  const isSafe = baseUrl.startsWith('https:') || isLocalAddress(baseUrl)
  const signup = read.choice('SIGNUP', SIGNUP_POLICIES, 'open')
  const smtpUrl = readSmtpUrl(read)
  if (isApiNode && signup === 'verified' && smtpUrl === undefined) {
    throw new ConfigError('SMTP_URL is required if SIGNUP is verified, because addresses are verified by mail')
  }
  const sender = readSender(read)
  // Other processes run without SMTP_URL, because it carries a password.
  if (isApiNode && smtpUrl === undefined) read.refuseWithout('SMTP_URL', ['SMTP_FROM'])
  return {
    signup,
    smtpUrl,
    mailFrom: sender ?? `agent-api-gateway@${new URL(baseUrl).hostname}`,
    isOauthOn: read.choice('OAUTH', ['on', 'off'], isSafe ? 'on' : 'off') === 'on',
    accessTokenHours: read.integer('OAUTH_ACCESS_TOKEN_HOURS', 8, [1, 24]),
    oidc: isApiNode ? readAccountsProvider(read, baseUrl) : undefined,
  }
}

/**
 * The sender of mails, if it is set: an address, or a name and an address in angle brackets.
 *
 * @throws ConfigError if it is no address, because the mail server would refuse every mail
 */
function readSender(read: EnvironmentReader): string | undefined {
  const value = read.text('SMTP_FROM', '')
  if (value === '' || /^(?:[^\s@<>,]+@[^\s@<>,]+|[^<>\r\n]*<[^\s@<>,]+@[^\s@<>,]+>)$/.test(value))
    return value || undefined
  throw new ConfigError(
    'SMTP_FROM must be a mail address, such as gateway@example.org or Gateway <gateway@example.org>',
  )
}

function readSmtpUrl(read: EnvironmentReader): string | undefined {
  const value = read.text('SMTP_URL', '')
  if (value === '') return undefined
  if (!/^smtps?:\/\/[^/]/.test(value) || !URL.canParse(value)) {
    throw new ConfigError('SMTP_URL must be an smtp: or smtps: address, smtp://user:password@host:587')
  }
  // The mail library ignores another spelling, and would send mails in clear.
  const names = [...new URL(value).searchParams.keys()]
  if (names.some((name) => name !== 'requireTLS' && name.toLowerCase() === 'requiretls'))
    throw new ConfigError('SMTP_URL must spell requireTLS like this, with capital letters at the end')
  return value
}
