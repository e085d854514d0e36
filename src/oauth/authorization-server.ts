import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'
import Provider, {
  type Adapter,
  type Configuration,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
} from 'oidc-provider'
import type { Catalog } from '../catalog/catalog.ts'
import { findUser } from '../db/users.ts'
import { ArtifactAdapter, type ArtifactDeps, ClientAdapter } from './artifact-adapter.ts'
import { adaptMetadata, checkRedirects, GRANT_TYPES, RESPONSE_TYPES } from './client-metadata.ts'
import { limitRefreshes } from './refresh.ts'
import {
  allowFormPost,
  answerFailure,
  answerUnhandled,
  isRefusedUnasked,
  renderError,
  tellOfDocument,
} from './refusals.ts'
import { CALL_SCOPE, isResource } from './resources.ts'
import { SignInAdapter } from './sign-in-adapter.ts'
import { withTokenUse } from './token-use.ts'

export interface AuthorizationDeps extends ArtifactDeps {
  catalog: Catalog
  /** Fetches metadata documents of applications, from public addresses only. */
  fetch: typeof fetch
  /**
   * Takes a place for a request of a client address that may fetch the document at a URL.
   *
   * @returns a function that gives the place back; undefined if the address may not fetch the
   *   document now
   */
  beginFetch: (url: string, address: string) => Promise<(() => void) | undefined>
  /** The page that tells a user why a sign-in cannot continue. */
  errorPage: (title: string, text: string) => string
}

const AUTHORIZATION_PATH = '/oauth/authorize'

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400

/** Lifetimes, seconds. Each use replaces the refresh token; a connection ends after a year. */
const TTL = {
  AuthorizationCode: MINUTE,
  RefreshToken: 30 * DAY,
  Grant: 365 * DAY,
  Interaction: 30 * MINUTE,
  Session: 30 * MINUTE,
}

/**
 * Bounds for how long a client's metadata document is cached, seconds, whatever its headers say.
 */
const DOCUMENT_SECONDS = { min: 60, max: 3_600 }

/**
 * The authorization server (OAuth 2.1). It offers only the code flow with PKCE, opaque access
 * tokens that are valid for one resource each, and refresh tokens that each use replaces. Every
 * endpoint address starts with `BASE_URL`, whatever host a request names.
 */
export function createAuthorizationServer(deps: AuthorizationDeps): Provider {
  const { config } = deps
  const provider = new Provider(config.http.baseUrl, configurationOf(deps))
  // The library reads host and scheme from headers, which the routes set from BASE_URL.
  provider.proxy = true
  provider.use(async (context, next) => {
    const policy = context.response.get('content-security-policy')
    try {
      await withTokenUse(next)
    } catch (error) {
      answerUnhandled(context as KoaContextWithOIDC, deps, error)
    } finally {
      context.state.endFetch?.()
    }
    if (isRefusedUnasked(context)) {
      context.remove('location')
      if (policy) context.set('content-security-policy', policy)
      renderError(context as KoaContextWithOIDC, deps, context.state.refusal)
    }
    if (context.status < 500) await context.state.endSignIn?.()
    allowFormPost(context)
    tellOfDocument(context)
  })
  provider.on('authorization.error', (context, error) => Object.assign(context.state, { refusal: error }))
  provider.on('server_error', (context, error) => answerFailure(context, deps, error))
  return provider
}

const EXTRA_CLIENT_METADATA: NonNullable<Configuration['extraClientMetadata']> = {
  properties: ['software_id'],
  // biome-ignore lint/complexity/useMaxParams: the form of oidc-provider's callback.
  validator: (_context, _name, _value, metadata) => {
    adaptMetadata(metadata)
    checkRedirects(metadata)
  },
}

function configurationOf(deps: AuthorizationDeps): Configuration {
  const { config, db } = deps
  return {
    adapter: (kind: string) => adapterOf(kind, deps),
    routes: {
      authorization: AUTHORIZATION_PATH,
      token: '/oauth/token',
      registration: '/oauth/register',
      revocation: '/oauth/revoke',
      jwks: '/oauth/jwks',
      end_session: '/oauth/end-session',
    },
    interactions: { policy: policyOf(), url: (_context, { uid }) => `/connect/${uid}` },
    scopes: [CALL_SCOPE, 'offline_access'],
    responseTypes: RESPONSE_TYPES,
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    pkce: { required: () => true },
    ttl: { ...TTL, AccessToken: config.accounts.accessTokenHours * HOUR },
    expiresWithSession: () => false,
    rotateRefreshToken: async (context) => {
      await limitRefreshes(deps, context)
      return true
    },
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
    loadExistingGrant: async ({ oidc }) => {
      // Each sign-in asks for consent of its own and makes a new connection, even if the user
      // consented before.
      const grantId = oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : await oidc.provider.Grant.find(grantId)
    },
    findAccount: async (_context, accountId) => {
      const user = await findUser(db, accountId)
      return user && user.disabled_at === null ? { accountId, claims: () => ({ sub: accountId }) } : undefined
    },
    clientDefaults: {
      grant_types: GRANT_TYPES,
      response_types: RESPONSE_TYPES,
      id_token_signed_response_alg: 'Ed25519',
    },
    extraClientMetadata: EXTRA_CLIENT_METADATA,
    features: featuresOf(deps),
    fetch: (address, options) => deps.fetch(address, options),
    fetchResponseBodyLimits: {
      'client_id metadata document': 5 * 1_024,
      jwks_uri: 5 * 1_024,
      sector_identifier_uri: 5 * 1_024,
    },
    cookies: {
      keys: config.secrets.encryption.map(({ bytes }) => derive(bytes, 'oauth cookies').toString('base64url')),
      names: { session: 'agw_oauth', interaction: 'agw_connect', resume: 'agw_connect_resume' },
    },
    enabledJWA: { idTokenSigningAlgValues: ['Ed25519'] },
    jwks: { keys: [signingKey(config.secrets.encryption[0]?.bytes ?? Buffer.alloc(0))] },
    renderError: (context, _out, error) => renderError(context, deps, error),
  }
}

function adapterOf(kind: string, deps: AuthorizationDeps): Adapter {
  if (kind === 'Client') return new ClientAdapter(deps)
  return kind === 'Interaction' ? new SignInAdapter(deps) : new ArtifactAdapter(kind, deps)
}

function featuresOf(deps: AuthorizationDeps): NonNullable<Configuration['features']> {
  const { config, catalog } = deps
  const { baseUrl } = config.http
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    revocation: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
    registration: { enabled: true, initialAccessToken: false, issueRegistrationAccessToken: false },
    clientIdMetadataDocument: {
      enabled: true,
      ack: 'draft-02',
      allowFetch: async (context, url) => {
        context.state.endFetch ??= await deps.beginFetch(url, context.ip)
        return context.state.endFetch !== undefined
      },
      cacheDuration: DOCUMENT_SECONDS,
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => `${baseUrl}/mcp`,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, indicator) => {
        if (!isResource(indicator, baseUrl, catalog)) throw new errors.InvalidTarget('this server has no such resource')
        return {
          scope: CALL_SCOPE,
          audience: indicator,
          accessTokenTTL: config.accounts.accessTokenHours * HOUR,
          accessTokenFormat: 'opaque',
        }
      },
    },
  }
}

/**
 * Every authorization request asks the user to sign in and to decide, because an earlier log-in is
 * no consent to this application.
 */
function policyOf(): interactionPolicy.DefaultPolicy {
  const policy = interactionPolicy.base()
  const { Check } = interactionPolicy
  policy
    .get('login')
    ?.checks.add(
      new Check('each_time', 'The user is asked each time', ({ oidc }) =>
        oidc.result?.login ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
      ),
    )
  return policy
}

function derive(secret: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', use, 32))
}

/** DER of a PKCS #8 Ed25519 key (RFC 8410, 7) before its 32 bytes. */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The library needs a signing key although it signs nothing that we send. Every node must have the
 * same key.
 */
function signingKey(secret: Buffer) {
  const der = Buffer.concat([ED25519, derive(secret, 'oauth signing key')])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const jwk = { ...createPublicKey(key).export({ format: 'jwk' }), ...key.export({ format: 'jwk' }) }
  return { ...jwk, kty: 'OKP' as const, use: 'sig', alg: 'Ed25519' }
}
