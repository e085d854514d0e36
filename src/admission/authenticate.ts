import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Tier } from '../catalog/upstream.ts'
import type { ProviderKeyState } from '../db/provider-keys.ts'
import { GatewayError, isDependencyAway } from '../errors.ts'
import { readBearer } from '../http/request/bearer.ts'
import { isCurrentVersion } from '../limits/account-version.ts'
import type { CredentialLimits } from '../limits/limit-state.ts'
import type { AddressList } from '../net/address-list.ts'
import { type LookUpDeps, lookUpPrincipal } from './look-up-principal.ts'

export interface Principal {
  accountId: string
  tier: Tier
  mode: 'live' | 'test'
  /**
   * Id of the API key, or of an application's connection, under which usage is counted. Undefined
   * for a session.
   */
  keyId: string | undefined
  /** Id of the log-in; absent for a key or a connection. */
  sessionId?: string
  /** Whether it is a team's key, which sees only its own calls and nothing else of the account. */
  isTeamKey: boolean
  /** Whether it may call endpoints that change something. Absent: no. */
  mayWrite?: boolean
  /** Provider keys by slug of the API. */
  providerKeys: Map<string, ProviderKeyState>
  /** Expiry, milliseconds since the epoch. */
  expiresAt: number
  /** The application, if it calls with an access token. */
  connection?: { id: string; resource: string }
  /**
   * The owner's restrictions of the key or the connection; absent for a session, and if there are
   * none.
   */
  allowance?: Allowance | undefined
  /** Version of the account's rights at the look-up. It is compared on every call. */
  version: string
  /** The group with which the account shares scarce upstreams, see `shareGroupOf`. */
  shareGroup: string
  /** What the sign-up policy still requires before live calls. */
  missingForLiveCalls: 'verification' | 'approval' | undefined
}

/** The owner's restrictions of a key or a connection. */
export interface Allowance extends CredentialLimits {
  /** Slugs of the APIs that it may call; null: all. */
  apis: readonly string[] | null
  /** Networks from which it may be used; null: everywhere. */
  addresses: AddressList | null
}

export interface AuthenticationDeps extends LookUpDeps {
  principals: PrincipalCache
}

type CallerRequest = Pick<FastifyRequest, 'headers' | 'ip'>

/**
 * Authenticates by API key (`X-Api-Key` or bearer), access token or session token; `X-Api-Key`
 * wins, even if it is wrong.
 * @throws GatewayError AUTH_REQUIRED, INVALID_API_KEY, INVALID_TOKEN, TOKEN_EXPIRED, or
 *   RATE_LIMIT_EXCEEDED for a client that sends unknown keys
 */
export async function authenticateCall(deps: AuthenticationDeps, request: CallerRequest): Promise<Principal> {
  const credential = readCredential(request.headers)
  return await deps.principals.get(credential.cacheKey, async (wasAccepted) => {
    const principal = await lookUpPrincipal(deps, credential, { wasAccepted, ip: request.ip })
    return credential.wantsTest ? { ...principal, mode: 'test' } : principal
  })
}

/**
 * Authenticates requests that take no limits. It compares the version of a cached principal,
 * because nothing else would notice that the principal is stale.
 */
export async function authenticateNow(deps: AuthenticationDeps, request: CallerRequest): Promise<Principal> {
  const principal = await authenticateCall(deps, request)
  if (await isUpToDate(deps, principal)) return principal
  forgetPrincipal(deps, request.headers, principal)
  return await authenticateCall(deps, request)
}

export function isUpToDate({ redis }: AuthenticationDeps, { accountId, version }: Principal): Promise<boolean> {
  // Fails closed, like every call without Redis.
  return isCurrentVersion(redis, accountId, version)
}

/** Forgets a principal, unless it was looked up again since `stale` was read. */
export function forgetPrincipal(
  deps: AuthenticationDeps,
  headers: IncomingHttpHeaders,
  stale: Principal | undefined,
): void {
  deps.principals.forget(readCredential(headers).cacheKey, stale)
}

export interface SentCredential {
  kind: 'key' | 'session' | 'token'
  secret: string
  /** Key of the credential in caches. Test calls with the same credential have another key. */
  cacheKey: string
  /**
   * Whether the caller requests a test call. Any credential may make test calls; a test key may
   * make only test calls.
   */
  wantsTest: boolean
}

/** A session token has dots, and an access token has 43 characters without dots. */
const ACCESS_TOKEN = /^[\w-]{43}$/

function readCredential(headers: IncomingHttpHeaders): SentCredential {
  const apiKey = headers['x-api-key']
  const secret = apiKey === undefined ? readBearer(headers) : String(apiKey)
  if (secret === undefined) throw new GatewayError('AUTH_REQUIRED')
  let kind: SentCredential['kind'] = 'key'
  if (apiKey === undefined && !secret.startsWith('agw_')) kind = ACCESS_TOKEN.test(secret) ? 'token' : 'session'
  const wantsTest = headers['x-gateway-mode'] === 'test'
  const digest = hash('sha256', secret, 'base64')
  return { kind, secret, cacheKey: `${kind}${wantsTest ? ' test' : ''} ${digest}`, wantsTest }
}

const PRINCIPALS_MAX = 10_000

/** Age from which a principal in use is renewed in the background, milliseconds. */
const RENEW_MS = 30_000

/**
 * Longest use of a principal without a renewal while Postgres answers, milliseconds. Changes show
 * earlier in the account's version.
 */
const FRESH_MS = 60_000

/** The same while Postgres does not answer. */
const PRINCIPAL_MS_MAX = 2 * FRESH_MS

/** Pause after a failed renewal, milliseconds. */
const RENEW_AGAIN_MS = 1_000

/** `lookedUpAt` of a principal that the next request must look up again. */
const FORGOTTEN = Number.NEGATIVE_INFINITY

type LookUp = (wasAccepted: boolean) => Promise<Principal>

interface Entry {
  principal: Principal
  lookedUpAt: number
  /**
   * Whether the last renewal failed because Postgres did not answer, so that the entry was kept.
   */
  isKept: boolean
}

/** The callers that this node knows, by the key of their credential. */
export class PrincipalCache {
  readonly #now: () => number
  readonly #entries: LRUCache<string, Entry, LookUp>

  /** @param now the time of Redis, because the clock of this machine may be slow */
  constructor(now: () => number) {
    this.#now = now
    this.#entries = new LRUCache({
      max: PRINCIPALS_MAX,
      ttl: RENEW_MS,
      ttlResolution: 0,
      perf: { now },
      // If `forget` is called during a look-up, the look-up still serves the calls that wait for
      // it, but no later call.
      ignoreFetchAbort: true,
      fetchMethod: async (_key, known, { context: lookUp, options }) => {
        try {
          return { principal: await lookUp(known !== undefined), lookedUpAt: this.#now(), isKept: false }
        } catch (error) {
          if (known === undefined || !isDependencyAway(error)) throw error
          // The credential still counts as known.
          options.noDeleteOnFetchRejection = true
          if (!this.#isUsable(known)) throw error
          // Fails open for a limited time, because the account's version in Redis is compared on
          // every call.
          // An entry of lru-cache is stale only after its ttl has passed.
          options.ttl = RENEW_AGAIN_MS - 1
          return { ...known, isKept: true }
        }
      },
    })
  }

  /**
   * Concurrent calls share one look-up, which gets whether the credential is known. While look-ups
   * fail with DEPENDENCY_UNAVAILABLE, a known principal is kept for a minute at least.
   */
  async get(key: string, lookUp: LookUp): Promise<Principal> {
    const fresh = this.#entries.get(key, { noDeleteOnStaleGet: true })
    if (fresh && this.#isUsable(fresh)) return fresh.principal
    const known = this.#entries.peek(key, { allowStale: true })
    const isUsable = known !== undefined && this.#isUsable(known)
    const { principal } = await this.#entries.forceFetch(key, {
      context: lookUp,
      forceRefresh: !isUsable,
      allowStale: isUsable && (known.isKept || this.#now() - known.lookedUpAt < FRESH_MS),
    })
    return principal
  }

  /**
   * Makes the next request look the credential up again, unless that was done since `stale` was
   * read. The credential still counts as known. A look-up under way may be stale too, and is not
   * shared.
   */
  forget(key: string, stale: Principal | undefined): void {
    const entry = this.#entries.peek(key, { allowStale: true })
    if (!entry || entry.principal !== stale || entry.lookedUpAt === FORGOTTEN) return
    this.#entries.set(key, { ...entry, lookedUpAt: FORGOTTEN })
  }

  /** Without Redis no change is announced: forget everything when the connection is lost. */
  clear(): void {
    this.#entries.clear()
  }

  #isUsable({ principal, lookedUpAt }: Entry): boolean {
    const now = this.#now()
    return now < principal.expiresAt && now - lookedUpAt < PRINCIPAL_MS_MAX
  }
}
