import * as oidc from 'openid-client'
import { fetch as undiciFetch } from 'undici'
import { open, seal } from '../accounts/secret-box.ts'
import type { Config, Secret } from '../config.ts'
import { openHttpClient } from '../net/http-client.ts'
import { type Operator, provenName, roleIn } from '../operator/actor.ts'

type OidcProvider = NonNullable<Config['operatorAccess']['oidc']>

/** How long a person may take at the provider, seconds. */
export const SIGN_IN_SECONDS = 600

/** Longest that a request to the provider may take, seconds. */
const PROVIDER_SECONDS_MAX = 10

/**
 * How long what the provider says of itself is used, milliseconds. Its keys are fetched anew when
 * one is not known.
 */
const FRESH_MS = 3_600_000

const RECORD = 'console sign-in'

/** What a sign-in remembers until the person comes back; it travels sealed in a cookie. */
interface Pending {
  state: string
  nonce: string
  verifier: string
  redirectUri: string
  /** The page of the console to which the person wanted. */
  next: string
  endsAt: number
}

/** A person whom the provider knows and who is in no group that may use the console. */
export class NoGroupError extends Error {}

/**
 * Sign-in to the console by the provider of OIDC_ISSUER: code flow with PKCE, state and nonce
 * (OpenID Connect Core 1.0, 3.1).
 */
export class OidcSignIn {
  readonly #access: Config['operatorAccess']
  readonly #provider: OidcProvider
  readonly #secrets: Secret[]
  readonly #dispatcher = openHttpClient({ connections: undefined, allowPrivate: true })
  #known: { at: number; configuration: Promise<oidc.Configuration> } | undefined

  constructor(access: Config['operatorAccess'], provider: OidcProvider, secrets: Secret[]) {
    this.#access = access
    this.#provider = provider
    this.#secrets = secrets
  }

  /**
   * @returns where the person signs in, and the cookie with which they come back.
   * @throws when the provider does not answer
   */
  async begin(redirectUri: string, next: string): Promise<{ url: string; cookie: string }> {
    const configuration = await this.#configuration()
    const pending: Pending = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
      redirectUri,
      next,
      endsAt: Date.now() + SIGN_IN_SECONDS * 1_000,
    }
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: 'openid email profile',
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: 'S256',
    })
    const { secretId, bytes } = seal(this.#secrets, RECORD, JSON.stringify(pending))
    return { url: url.href, cookie: `${secretId}.${bytes.toString('base64url')}` }
  }

  /**
   * Ends a sign-in.
   *
   * @param query of the address to which the provider sent the person back
   * @throws NoGroupError; any other error for what is no answer to this sign-in: another browser,
   *   state, nonce, issuer, audience or key, or one that is over
   */
  async finish(query: string, cookie: string): Promise<Operator & { subject: string; next: string }> {
    const pending = this.#open(cookie)
    const configuration = await this.#configuration()
    const tokens = await oidc.authorizationCodeGrant(configuration, new URL(`${pending.redirectUri}${query}`), {
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      pkceCodeVerifier: pending.verifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()
    if (claims === undefined) throw new Error('the provider sent no ID token')
    // Many providers keep groups and addresses out of the ID token, which is to be small.
    const hasAll = claims[this.#access.groupsClaim] !== undefined && claims.email !== undefined
    const { userinfo_endpoint: hasUserInfo } = configuration.serverMetadata()
    const more = hasAll || !hasUserInfo ? {} : await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    const person: Record<string, unknown> = { ...more, ...claims }
    const role = roleIn(groupsIn(person[this.#access.groupsClaim]), this.#access)
    const name = nameIn(person) ?? provenName(claims.sub)
    if (role === undefined || name === undefined) throw new NoGroupError(`${name ?? 'a person'} is in no group`)
    return { name, role, by: 'oidc', subject: claims.sub, next: pending.next }
  }

  async close(): Promise<void> {
    await this.#dispatcher.close()
  }

  #open(cookie: string): Pending {
    const [secretId = '', text = ''] = cookie.split('.')
    const pending = JSON.parse(
      open(this.#secrets, RECORD, { secretId, bytes: Buffer.from(text, 'base64url') }),
    ) as Pending
    if (pending.endsAt < Date.now()) throw new Error('the sign-in took too long')
    return pending
  }

  /** Remembered unless it fails: a provider that is away while the console starts is met later. */
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
    const { issuer, clientId, clientSecret } = this.#provider
    const isPlain = issuer.protocol === 'http:'
    const options: oidc.DiscoveryRequestOptions = {
      [oidc.customFetch]: this.#fetch,
      timeout: PROVIDER_SECONDS_MAX,
      // The signature of an ID token is checked too, whatever the connection says of its sender. A
      // provider without TLS is one on this machine: the settings take no other.
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

  /** As every connection is opened: by the name servers of the settings. */
  readonly #fetch: oidc.CustomFetch = async (url, { body, headers, method, redirect, signal }) =>
    (await undiciFetch(url, {
      ...{ headers, method, redirect, dispatcher: this.#dispatcher },
      ...(body === undefined || body === null ? {} : { body: body as string }),
      ...(signal ? { signal } : {}),
    })) as unknown as Response
}

function groupsIn(value: unknown): string[] {
  const groups: unknown[] = Array.isArray(value) ? value : [value]
  return groups.filter((group) => typeof group === 'string')
}

/**
 * By which name the person goes: an address that the provider does not call unproven, else the name
 * at the provider.
 */
function nameIn({ email, email_verified: isVerified, preferred_username: username }: Record<string, unknown>) {
  return isVerified === false ? provenName(username) : (provenName(email) ?? provenName(username))
}
