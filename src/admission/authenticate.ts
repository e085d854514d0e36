import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { hashApiKey, isApiKeyShaped } from '../accounts/api-key.ts'
import { verifySessionToken } from '../accounts/session-token.ts'
import { SingleFlight } from '../async/single-flight.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { Config } from '../config.ts'
import { findKeyOwner } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import { listProviderKeyStates, type ProviderKeyState } from '../db/provider-keys.ts'
import { findSessionUser } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import { readBearer } from '../http/bearer.ts'
import { isCurrentVersion, readAccountVersion } from '../limits/account-version.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { redisCall } from '../redis/unavailable.ts'

/** Who is calling. */
export interface Principal {
  accountId: string
  tier: Tier
  /** Calls with a test key are answered from recorded examples. */
  mode: 'live' | 'test'
  /** Id of the API key; undefined for a session. */
  keyId: string | undefined
  /** The caller's own upstream keys, by slug. */
  providerKeys: Map<string, ProviderKeyState>
  /** When the credential ends by itself, milliseconds since the epoch. */
  expiresAt: number
  /** Version of the account's rights under which this was looked up; checked with the limits on every call. */
  version: string
}

export interface AuthenticationDeps {
  config: Config
  db: Db
  redis: RedisConnection
  principals: PrincipalCache
}

/** The credential of a call, named so that nothing remembers the secret itself. */
interface Credential {
  kind: 'key' | 'session'
  secret: string
  cacheKey: string
}

/**
 * Finds out who sends a call: an API key in `X-Api-Key` or as a bearer, or a session token. `X-Api-Key` wins when it is
 * there, even when it is wrong.
 *
 * @throws GatewayError AUTH_REQUIRED, INVALID_API_KEY, INVALID_TOKEN or TOKEN_EXPIRED
 */
export async function authenticateCall(sources: AuthenticationDeps, headers: IncomingHttpHeaders): Promise<Principal> {
  const { kind, secret, cacheKey } = readCredential(headers)
  return await sources.principals.get(cacheKey, () =>
    kind === 'key' ? lookUpKey(sources, secret) : lookUpSession(sources, secret),
  )
}

/**
 * As `authenticateCall`, for a request that takes nothing of the account's limits, with which a call's credential is
 * found out of date: what this node remembers is compared with the account's version here.
 */
export async function authenticateNow(sources: AuthenticationDeps, headers: IncomingHttpHeaders): Promise<Principal> {
  const principal = await authenticateCall(sources, headers)
  if (await isUpToDate(sources, principal)) return principal
  forgetPrincipal(sources, headers, principal)
  return await authenticateCall(sources, headers)
}

/** Whether nothing about the account changed since this node looked the caller up. */
export function isUpToDate({ redis }: AuthenticationDeps, { accountId, version }: Principal): Promise<boolean> {
  // Fails closed, as every call does without Redis.
  return redisCall(() => isCurrentVersion(redis, accountId, version))
}

/** Makes this node look the caller up again at its next call, unless it has done so since this one was found stale. */
export function forgetPrincipal(
  sources: AuthenticationDeps,
  headers: IncomingHttpHeaders,
  stale: Principal | undefined,
): void {
  sources.principals.forget(readCredential(headers).cacheKey, stale)
}

function readCredential(headers: IncomingHttpHeaders): Credential {
  const apiKey = headers['x-api-key']
  if (apiKey !== undefined) return keyCredential(String(apiKey))
  const bearer = readBearer(headers)
  if (bearer === undefined) throw new GatewayError('AUTH_REQUIRED')
  if (bearer.startsWith('agw_')) return keyCredential(bearer)
  return { kind: 'session', secret: bearer, cacheKey: hash('sha256', bearer, 'base64') }
}

function keyCredential(secret: string): Credential {
  // A wrong checksum costs nobody a look-up.
  if (!isApiKeyShaped(secret)) throw new GatewayError('INVALID_API_KEY')
  return { kind: 'key', secret, cacheKey: hash('sha256', secret, 'base64') }
}

async function lookUpKey({ config, db, redis }: AuthenticationDeps, key: string): Promise<Principal> {
  const keyHash = hashApiKey(config.secrets.keyPepper, key)
  const first = await findKeyOwner(db, keyHash)
  if (!first) throw new GatewayError('INVALID_API_KEY')
  // The version is read before the rights that are kept under it: a change in between makes them stale, never fresh.
  const version = await redisCall(() => readAccountVersion(redis, first.userId))
  const owner = await findKeyOwner(db, keyHash)
  if (!owner) throw new GatewayError('INVALID_API_KEY')
  return {
    accountId: owner.userId,
    tier: owner.tier,
    mode: owner.environment,
    keyId: owner.keyId,
    // Own keys are for own calls: those of a team's members are made without them.
    providerKeys: owner.teamId === null ? await loadProviderKeys(db, owner.userId) : new Map(),
    expiresAt: owner.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    version,
  }
}

async function lookUpSession({ config, db, redis }: AuthenticationDeps, token: string): Promise<Principal> {
  const { userId, sessionId, expiresAt } = await verifySessionToken(config.secrets.jwt, token)
  const version = await redisCall(() => readAccountVersion(redis, userId))
  const user = await findSessionUser(db, userId, sessionId)
  if (!user) throw new GatewayError('INVALID_TOKEN')
  const providerKeys = await loadProviderKeys(db, user.id)
  return { accountId: user.id, tier: user.tier, mode: 'live', keyId: undefined, providerKeys, expiresAt, version }
}

async function loadProviderKeys(db: Db, userId: string): Promise<Map<string, ProviderKeyState>> {
  const keys = await listProviderKeyStates(db, userId)
  return new Map(keys.map((key) => [key.slug, key]))
}

const PRINCIPALS_MAX = 10_000

/** How long a look-up is kept, milliseconds; what changes meanwhile is told by the account's version. */
const PRINCIPAL_MS = 60_000

/** Who recent credentials belong to, in this process. */
export class PrincipalCache {
  readonly #entries = new Map<string, { principal: Principal; until: number }>()
  readonly #lookUps = new SingleFlight<Principal>()

  /**
   * The principal of a credential. Calls that come while it is looked up share that look-up: thousands at once with a
   * new key ask Postgres once. One that proves stale is found out by its version, like any other.
   */
  async get(key: string, lookUp: () => Promise<Principal>): Promise<Principal> {
    const entry = this.#entries.get(key)
    if (entry && Date.now() < entry.until) return entry.principal
    return await this.#lookUps.run(key, async () => {
      const principal = await lookUp()
      this.#keep(key, principal)
      return principal
    })
  }

  #keep(key: string, principal: Principal): void {
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= PRINCIPALS_MAX && oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(key, { principal, until: Math.min(Date.now() + PRINCIPAL_MS, principal.expiresAt) })
  }

  /** Forgets what was found stale; what was looked up since stays. */
  forget(key: string, stale: Principal | undefined): void {
    if (this.#entries.get(key)?.principal === stale) this.#entries.delete(key)
  }

  /** Without Redis no change can be heard of: forget everything when the connection is lost. */
  clear(): void {
    this.#entries.clear()
  }
}
