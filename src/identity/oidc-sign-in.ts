import * as oidc from 'openid-client'
import { fetch as undiciFetch } from 'undici'
import { open, seal } from '../accounts/secret-box.ts'
import type { OidcProvider, Secret } from '../config.ts'
import { openHttpClient } from '../net/http-client.ts'
import type { RedisClock } from '../redis/clock.ts'
import { SIGN_IN_SECONDS } from './pending-cookie.ts'

/** Longest that a request to the provider may take, seconds. */
const PROVIDER_SECONDS_MAX = 10

/** Longest answer of the provider, bytes; a longer answer ends the sign-in. Fails closed. */
const ANSWER_BYTES_MAX = 256 * 1_024

/**
 * Codes that a process exchanges at once. Fails closed: people beyond this number have to try
 * again.
 */
const EXCHANGES_MAX = 50

/**
 * How long the provider's configuration and keys are used, milliseconds: an hour. After a failed
 * sign-in: a minute, because the provider may have new keys.
 */
const FRESH_MS = 3_600_000
const DOUBTFUL_MS = 60_000

/**
 * Longest cookie that holds sign-ins in progress. Browsers accept 4096 bytes with name and
 * attributes.
 */
const COOKIE_LENGTH_MAX = 3_800

/** Longest `sub` of a provider (OpenID Connect Core 1.0, 2). */
const SUBJECT_LENGTH_MAX = 255

/** What a sign-in remembers until the person comes back. */
interface Pending {
  state: string
  nonce: string
  verifier: string
  redirectUri: string
  /** The page that the person wanted to open. */
  next: string
  endsAt: number
}

/** A person whom the provider has signed in. */
export interface Person {
  issuer: string
  /** The provider's own id of the person, which it never gives to another person. */
  subject: string
  /**
   * Claims of the ID token, and the user info. The user info is empty if the ID token had all
   * needed claims, or if the provider offers no user info.
   */
  claims: Record<string, unknown>
  userInfo: Record<string, unknown>
}

export interface SignInOptions {
  provider: OidcProvider
  secrets: Secret[]
  /** A cookie for one purpose is not valid for the other. */
  purpose: 'console sign-in' | 'account sign-in'
  /** Claims that are needed. The user info is read if the ID token lacks any of them. */
  neededClaims: string[]
  /** The clock of Redis, because a sign-in may begin on one node and end on another. */
  clock: Pick<RedisClock, 'now'>
}

/**
 * Sign-in at the provider of OIDC_ISSUER: code flow with PKCE, state and nonce (OpenID Connect Core
 * 1.0, 3.1). The state of a sign-in travels sealed in a cookie of the browser, so a code that
 * another browser received is refused. The cookie holds the newest sign-ins of the browser, one for
 * each tab.
 */
export class OidcSignIn {
  readonly #options: SignInOptions
  readonly #dispatcher = openHttpClient({ connections: undefined, allowPrivate: true })
  #known: { at: number; configuration: Promise<oidc.Configuration> } | undefined
  #exchanges = 0

  constructor(options: SignInOptions) {
    this.#options = options
  }

  /**
   * @param cookie with earlier sign-ins of this browser, which stay valid
   * @returns the address at which the person signs in, and the new cookie
   * @throws if the provider does not answer
   */
  async begin(sought: { redirectUri: string; next: string; cookie: string }): Promise<{ url: string; cookie: string }> {
    const configuration = await this.#configuration()
    const { redirectUri, next } = sought
    const pending: Pending = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
      redirectUri,
      next,
      endsAt: this.#options.clock.now() + SIGN_IN_SECONDS * 1_000,
    }
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: 'openid email profile',
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: 'S256',
    })
    return { url: url.href, cookie: this.#sealed([pending, ...this.#opened(sought.cookie)]) }
  }

  /**
   * Ends a sign-in.
   *
   * @param query of the address at which the provider sent the person back
   * @throws if the query does not answer a sign-in of this browser (other browser, state, nonce,
   *   issuer, audience or key), or the sign-in has expired
   */
  async finish(query: string, cookie: string): Promise<Person & { next: string }> {
    const pending = this.#opened(cookie).find(({ state }) => state === stateIn(query))
    if (!pending) throw new Error('this browser has not started this sign-in, or the sign-in took too long')
    if (this.#exchanges >= EXCHANGES_MAX) throw new Error('too many sign-ins are waiting for the OIDC provider')
    this.#exchanges += 1
    try {
      return { ...(await this.#exchange(query, pending)), next: pending.next }
    } catch (error) {
      if (this.#known && Date.now() - this.#known.at > DOUBTFUL_MS) this.#known = undefined
      throw error
    } finally {
      this.#exchanges -= 1
    }
  }

  /**
   * The cookie without the sign-in that the query answers; undefined if no other sign-in is left.
   */
  rest(query: string, cookie: string): string | undefined {
    const others = this.#opened(cookie).filter(({ state }) => state !== stateIn(query))
    return others.length === 0 ? undefined : this.#sealed(others)
  }

  async close(): Promise<void> {
    await this.#dispatcher.close()
  }

  async #exchange(query: string, pending: Pending): Promise<Person> {
    const configuration = await this.#configuration()
    const tokens = await oidc.authorizationCodeGrant(configuration, new URL(`${pending.redirectUri}${query}`), {
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      pkceCodeVerifier: pending.verifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()
    if (claims === undefined) throw new Error('the provider sent no ID token')
    if (claims.sub === '' || claims.sub.length > SUBJECT_LENGTH_MAX) throw new Error('the provider sent no usable sub')
    // Many providers leave groups and addresses out of the ID token to keep it small.
    const hasAll = this.#options.neededClaims.every((name) => claims[name] !== undefined)
    const { userinfo_endpoint: hasUserInfo } = configuration.serverMetadata()
    const userInfo =
      hasAll || !hasUserInfo ? {} : await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    return { issuer: claims.iss, subject: claims.sub, claims, userInfo }
  }

  /** Seals as many sign-ins as the cookie can hold, the newest first. */
  #sealed(pendings: Pending[]): string {
    const kept = [...pendings]
    for (;;) {
      const { secretId, bytes } = seal(this.#options.secrets, this.#options.purpose, JSON.stringify(kept))
      const cookie = `${secretId}.${bytes.toString('base64url')}`
      if (cookie.length <= COOKIE_LENGTH_MAX || kept.length === 1) return cookie
      kept.pop()
    }
  }

  /**
   * The sign-ins of a cookie that have not expired; none if this gateway did not make the cookie.
   */
  #opened(cookie: string): Pending[] {
    const [secretId = '', text = ''] = cookie.split('.')
    try {
      const sealed = { secretId, bytes: Buffer.from(text, 'base64url') }
      const pendings = JSON.parse(open(this.#options.secrets, this.#options.purpose, sealed)) as Pending[]
      return pendings.filter(({ endsAt }) => endsAt > this.#options.clock.now())
    } catch {
      // The cookie is absent, forged or sealed with another key.
      return []
    }
  }

  /**
   * Loads the provider's configuration and remembers it unless the load fails. If the provider is
   * away while the process starts, the next sign-in loads it.
   */
  #configuration(): Promise<oidc.Configuration> {
    if (this.#known && Date.now() - this.#known.at < FRESH_MS) return this.#known.configuration
    const known = { at: Date.now(), configuration: this.#discover() }
    this.#known = known
    known.configuration.catch(() => {
      if (this.#known === known) this.#known = undefined
    })
    return known.configuration
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#options.provider
    const isPlain = issuer.protocol === 'http:'
    const options: oidc.DiscoveryRequestOptions = {
      [oidc.customFetch]: this.#fetch,
      timeout: PROVIDER_SECONDS_MAX,
      // The signature of an ID token is checked even if it came over TLS. Without TLS the provider
      // runs on this machine, because the settings accept no other plain address.
      execute: isPlain
        ? [oidc.enableNonRepudiationChecks, oidc.allowInsecureRequests]
        : [oidc.enableNonRepudiationChecks],
    }
    const found = await oidc.discovery(issuer, clientId, undefined, oidc.ClientSecretBasic(clientSecret), options)
    const { token_endpoint_auth_methods_supported: ways = ['client_secret_basic'] } = found.serverMetadata()
    if (ways.includes('client_secret_basic')) return found
    const posting = new oidc.Configuration(
      found.serverMetadata(),
      clientId,
      undefined,
      oidc.ClientSecretPost(clientSecret),
    )
    posting[oidc.customFetch] = this.#fetch
    posting.timeout = PROVIDER_SECONDS_MAX
    for (const execute of options.execute ?? []) execute(posting)
    return posting
  }

  /** Opens the connection with the name servers of the settings, as every connection is opened. */
  readonly #fetch: oidc.CustomFetch = async (url, { body, headers, method, redirect, signal }) => {
    const answer = await undiciFetch(url, {
      ...{ headers, method, redirect, dispatcher: this.#dispatcher },
      ...(body === undefined || body === null ? {} : { body: body as string }),
      ...(signal ? { signal } : {}),
    })
    const fields = { status: answer.status, headers: [...answer.headers] }
    return new Response(answer.body === null ? null : bounded(answer.body as ReadableStream<Uint8Array>), fields)
  }
}

function stateIn(query: string): string | null {
  return new URLSearchParams(query).get('state')
}

/** Limits a stream: reading fails when too many bytes have arrived. */
function bounded(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let count = 0
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform: (bytes, controller) => {
      count += bytes.byteLength
      if (count > ANSWER_BYTES_MAX) throw new Error('the answer of the OIDC provider is too long')
      controller.enqueue(bytes)
    },
  })
  return body.pipeThrough(counting)
}
