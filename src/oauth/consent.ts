import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import { readAllowed } from '../accounts/credential-limits.ts'
import { oneLine } from '../accounts/foreign-text.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { insertConnection } from '../db/connections.ts'
import { GatewayError, isDependencyAway } from '../errors.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { limitCredentials } from '../throttles/credential-limit.ts'
import type { ArtifactDeps } from './artifact-adapter.ts'
import { redirectWords } from './redirect-words.ts'
import { CALL_SCOPE, resourceOf } from './resources.ts'

export interface ConsentDeps extends ArtifactDeps {
  catalog: Catalog
  provider: Provider
}

/** Connections that an account may have. */
export const CONNECTIONS_MAX = 100

/**
 * The request and answer of a browser in the middle of a sign-in. The library reads the sign-in
 * from the request's cookies.
 */
export interface Exchange {
  raw: { request: IncomingMessage; response: ServerResponse }
}

/** What the consent page shows. */
export interface PendingConsent {
  /** The name that the application gave itself; untrusted text. */
  clientName: string
  /**
   * The host of the application's metadata document; null for an application that registered
   * itself.
   */
  clientHost: string | null
  redirectHost: string
  resource: string
}

/** What a user decided. */
export interface Decision {
  allow: boolean
  /** Slugs of APIs that the application may call; absent: all. */
  apis?: string[]
  /** Limits of its calls in any minute, in a month and at once; absent: the limits of the plan. */
  perMinute?: number
  perMonth?: number
  inFlight?: number
  /** Whether it may call endpoints that change something at their source; absent: no. */
  mayWrite?: boolean
}

const expired = (cause: unknown) =>
  new GatewayError('NOT_FOUND', {
    message: 'There is no such sign-in, or it has expired.',
    hint: 'Start the sign-in again in the application',
    cause,
  })

/** @throws GatewayError NOT_FOUND for a sign-in that is over, or that another browser began */
async function findInteraction({ provider }: ConsentDeps, { raw }: Exchange) {
  const interaction = await provider.interactionDetails(raw.request, raw.response).catch((error: unknown) => {
    throw isDependencyAway(error) ? error : expired(error)
  })
  if (Array.isArray(interaction.params.resource) && interaction.params.resource.length > 1) {
    throw new GatewayError('VALIDATION_ERROR', { message: 'An application may request only one resource at a time.' })
  }
  const client = await provider.Client.find(String(interaction.params.client_id))
  if (!client) throw expired('the client no longer exists')
  return { interaction, client }
}

/**
 * The resource of a sign-in. A sign-in has a single resource, because a connection has a single
 * resource.
 */
function requestedResource({ config }: ConsentDeps, params: Record<string, unknown>): string {
  const { baseUrl } = config.http
  const [resource] = [params.resource ?? `${baseUrl}/mcp`].flat()
  return resourceOf(String(resource), baseUrl) ?? String(resource)
}

/**
 * What the consent page asks the user to decide.
 * @throws GatewayError NOT_FOUND
 */
export async function readConsent(deps: ConsentDeps, exchange: Exchange): Promise<PendingConsent> {
  const { interaction, client } = await findInteraction(deps, exchange)
  const { clientId, clientName } = client
  const redirect = new URL(String(interaction.params.redirect_uri))
  return {
    clientName: oneLine(clientName ?? '') || oneLine(clientId),
    clientHost: /^https:/.test(clientId) ? shortHost(new URL(clientId).host) : null,
    redirectHost: shortHost(redirectWords(redirect)),
    resource: requestedResource(deps, interaction.params),
  }
}

/** Shortens a long host at its beginning, because its end says who owns it. */
function shortHost(host: string): string {
  return host.length <= HOST_LENGTH_MAX ? host : `…${host.slice(1 - HOST_LENGTH_MAX)}`
}

const HOST_LENGTH_MAX = 80

/**
 * Records what the user decided. If the user agrees, it makes a connection.
 *
 * @returns the address at which the browser continues
 * @throws GatewayError NOT_FOUND, VALIDATION_ERROR, CONNECTION_LIMIT_REACHED or RATE_LIMIT_EXCEEDED
 */
export async function decideConsent(
  deps: ConsentDeps,
  exchange: Exchange,
  { userId, decision }: { userId: string; decision: Decision },
): Promise<string> {
  const { provider, db, redis, log } = deps
  const { raw } = exchange
  if (!decision.allow) {
    await findInteraction(deps, exchange)
    const refusal = { error: 'access_denied', error_description: 'The user refused the connection.' }
    return await provider.interactionResult(raw.request, raw.response, refusal, { mergeWithLastSubmission: false })
  }
  const { apis, perMinute = null, perMonth = null, inFlight = null, mayWrite = false } = decision
  const allowed = readAllowed(deps.catalog, { apis: apis ?? null, limits: { perMinute, perMonth, inFlight }, mayWrite })
  const { interaction, client } = await findInteraction(deps, exchange)
  const { clientName, redirectHost, resource } = await readConsent(deps, exchange)
  const id = randomUUID()
  const connection = {
    id,
    user_id: userId,
    client_id: client.clientId,
    client_name: clientName,
    redirect_host: redirectHost,
    resource,
    ...allowed,
  }
  // A new connection replaces earlier connections of the application to this resource.
  await limitCredentials(deps, userId, async () => {
    const insert = () => insertConnection(db, connection, CONNECTIONS_MAX)
    if (!(await withAnnouncement({ redis, log }, [userId], insert))) throw new GatewayError('CONNECTION_LIMIT_REACHED')
  })
  const grant = new provider.Grant({ accountId: userId, clientId: client.clientId })
  grant.jti = id
  // Grants both scopes, because clients ask for the scopes that the metadata lists. If a client
  // does not get a scope, it asks again and again.
  const scope = `${CALL_SCOPE} offline_access`
  grant.addOIDCScope([scope, interaction.params.scope].filter(Boolean).join(' '))
  grant.addResourceScope(resource, scope)
  await grant.save()
  const result = { login: { accountId: userId, remember: false }, consent: { grantId: id } }
  return await provider.interactionResult(raw.request, raw.response, result, { mergeWithLastSubmission: false })
}
