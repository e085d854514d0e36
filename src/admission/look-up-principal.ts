import { hash } from 'node:crypto'
import { hashApiKey, holdsApiKey, isApiKeyShaped } from '../accounts/api-key.ts'
import { type SessionClaims, verifySessionToken } from '../accounts/session-token.ts'
import { missingForLiveCalls, shareGroupOf } from '../accounts/trust.ts'
import type { Config } from '../config.ts'
import { type AllowedToCredential, findKeyOwner } from '../db/api-keys.ts'
import { findTokenOwner } from '../db/connections.ts'
import type { Db } from '../db/database.ts'
import { listProviderKeyStates, type ProviderKeyOwner, type ProviderKeyState } from '../db/provider-keys.ts'
import type { User } from '../db/schema.ts'
import { findSessionUser } from '../db/sessions.ts'
import type { Trust } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { readAccountVersion } from '../limits/account-version.ts'
import { AddressList } from '../net/address-list.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { UnknownKeys } from '../throttles/unknown-keys.ts'
import type { Allowance, Principal, SentCredential } from './authenticate.ts'

export interface LookUpDeps {
  config: Config
  db: Db
  redis: RedisConnection
  clock: Pick<RedisClock, 'now'>
  /**
   * Connections for unknown credentials, so that a flood of made-up keys cannot keep known accounts
   * from `db`.
   */
  strangersDb: Db
  unknownKeys: UnknownKeys
}

/**
 * Looks up the account of a credential in Postgres. `wasAccepted`: the credential was valid at the
 * last look-up, so it does not count as unknown.
 *
 * @throws GatewayError if the credential belongs to nobody
 */
export async function lookUpPrincipal(
  deps: LookUpDeps,
  credential: SentCredential,
  { wasAccepted, ip }: { wasAccepted: boolean; ip: string },
): Promise<Principal> {
  const { db, strangersDb, unknownKeys } = deps
  const find = await finderOf(deps, credential)
  try {
    const principal = wasAccepted
      ? await find(db)
      : await unknownKeys.lookUp(credential.cacheKey, ip, () => find(strangersDb))
    if (principal) return principal
    throw new GatewayError('INVALID_API_KEY')
  } catch (error) {
    const isNobodys = error instanceof GatewayError && error.code === 'INVALID_API_KEY'
    throw isNobodys && credential.kind === 'token' ? endedToken() : error
  }
}

/**
 * Returns a function that finds the account of a credential. The function first uses a database
 * that its caller chooses.
 *
 * @throws GatewayError if the credential cannot be valid
 */
async function finderOf(
  deps: LookUpDeps,
  { kind, secret }: SentCredential,
): Promise<(firstDb: Db) => Promise<Principal | undefined>> {
  if (kind === 'token') return (firstDb) => lookUpToken(deps, secret, firstDb)
  if (kind === 'session') {
    const session = await verifySessionToken(deps.config.secrets.jwt, secret, deps.clock.now())
    return (firstDb) => lookUpSession(deps, session, firstDb)
  }
  // A wrong checksum is refused without a look-up.
  if (!isApiKeyShaped(secret)) throw malformedKey(secret)
  return (firstDb) => lookUpKey(deps, secret, firstDb)
}

/** `firstDb` finds the account of the key. The account's version must be read before its rights. */
async function lookUpKey({ config, db, redis }: LookUpDeps, key: string, firstDb: Db): Promise<Principal | undefined> {
  const keyHash = hashApiKey(config.secrets.keyPepper, key)
  const first = await findKeyOwner(firstDb, keyHash)
  if (!first) return undefined
  // If the rights change between these reads, the version is the older: the next call finds that it
  // is outdated, and looks the rights up again.
  const version = await readAccountVersion(redis, first.userId)
  const owner = await findKeyOwner(db, keyHash)
  if (!owner) return undefined
  if (owner.disabledAt) throw new GatewayError('INVALID_API_KEY')
  return {
    accountId: owner.userId,
    tier: owner.tier,
    mode: owner.environment,
    keyId: owner.keyId,
    isTeamKey: owner.teamId !== null,
    mayWrite: owner.mayWrite,
    allowance: allowanceOf(owner),
    // A team's key uses the provider keys of the team, never the provider keys of its owner's own
    // account.
    providerKeys: await loadProviderKeys(
      db,
      owner.teamId === null ? { userId: owner.userId } : { teamId: owner.teamId },
    ),
    expiresAt: owner.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    version,
    ...trustOf(config, { ...owner, id: owner.userId }),
  }
}

/** The refusal in words for an application, which has no password to log in with. */
function endedToken(): GatewayError {
  return new GatewayError('INVALID_TOKEN', {
    message: 'The access token is not valid: it has expired, or the connection of the application has ended.',
    hint: 'Send the refresh token to POST /oauth/token, or sign in again',
  })
}

async function lookUpToken(
  { config, db, redis }: LookUpDeps,
  token: string,
  firstDb: Db,
): Promise<Principal | undefined> {
  const idHash = hash('sha256', token, 'buffer')
  const first = config.accounts.isOauthOn ? await findTokenOwner(firstDb, idHash) : undefined
  if (!first) return undefined
  const version = await readAccountVersion(redis, first.userId)
  const owner = await findTokenOwner(db, idHash)
  if (!owner) return undefined
  if (owner.disabledAt) throw endedToken()
  const { connectionId, userId, tier, resource, mayWrite, expiresAt } = owner
  return {
    accountId: userId,
    tier,
    mode: 'live',
    keyId: connectionId,
    isTeamKey: false,
    mayWrite,
    providerKeys: await loadProviderKeys(db, { userId }),
    expiresAt: expiresAt.getTime(),
    connection: { id: connectionId, resource },
    allowance: allowanceOf(owner),
    version,
    ...trustOf(config, { ...owner, id: userId }),
  }
}

async function lookUpSession(
  { config, db, redis }: LookUpDeps,
  { userId, sessionId, expiresAt }: SessionClaims & { expiresAt: number },
  firstDb: Db,
): Promise<Principal> {
  const version = await readAccountVersion(redis, userId)
  const user = await findSessionUser(firstDb, userId, sessionId)
  if (!user) throw new GatewayError('INVALID_TOKEN')
  const providerKeys = await loadProviderKeys(db, { userId: user.id })
  return {
    accountId: user.id,
    tier: user.tier,
    mode: 'live',
    keyId: undefined,
    sessionId,
    isTeamKey: false,
    mayWrite: true,
    providerKeys,
    expiresAt,
    version,
    ...trustOf(config, user),
  }
}

function trustOf(
  { accounts, secrets }: Config,
  account: Trust & Pick<User, 'id' | 'tier'>,
): Pick<Principal, 'shareGroup' | 'missingForLiveCalls'> {
  return {
    shareGroup: shareGroupOf(account, secrets.keyPepper),
    missingForLiveCalls: missingForLiveCalls(account, accounts.signup),
  }
}

async function loadProviderKeys(db: Db, owner: ProviderKeyOwner): Promise<Map<string, ProviderKeyState>> {
  const keys = await listProviderKeyStates(db, owner)
  return new Map(keys.map((key) => [key.slug, key]))
}

/** Says what to send, if it is clear what was sent in place of a key. */
function malformedKey(sent: string): GatewayError {
  if (holdsApiKey(sent)) {
    return new GatewayError('INVALID_API_KEY', {
      message: 'The API key is incomplete, or the header contains more than the key.',
      hint: 'Send the whole key and nothing else, as it was shown when it was created',
    })
  }
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(sent)) {
    return new GatewayError('INVALID_API_KEY', {
      message: 'This is a session token, not an API key.',
      hint: 'Send it as Authorization: Bearer',
    })
  }
  return new GatewayError('INVALID_API_KEY')
}

/**
 * Undefined if the owner has set no limit. The limit script then counts nothing for the credential.
 */
function allowanceOf({
  limitsId: id,
  apis,
  addresses,
  perMinute,
  perMonth,
  inFlight,
}: AllowedToCredential): Allowance | undefined {
  if ([addresses, apis, perMinute, perMonth, inFlight].every((limit) => limit === null)) return undefined
  // Parsed once for all calls that share the principal.
  return { id, apis, perMinute, perMonth, inFlight, addresses: addresses && new AddressList(addresses) }
}
