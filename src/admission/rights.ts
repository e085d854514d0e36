import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import type { Tier } from '../catalog/upstream.ts'
import { GatewayError } from '../errors.ts'
import { planOf, reaches } from '../limits/plans.ts'
import type { Principal } from './authenticate.ts'

/**
 * Whoever owns a key or a connection decides which APIs it may call and whether it may change
 * anything; the operator's sign-up policy decides who may make live calls. Fails closed.
 *
 * @throws GatewayError KEY_API_FORBIDDEN, FORBIDDEN or PLAN_UPGRADE_REQUIRED
 */
export function checkRights(api: Api, endpoint: ApiEndpoint, principal: Principal): void {
  const { allowance, mayWrite, mode, missingForLiveCalls: missing, tier } = principal
  if (allowance?.apis && !allowance.apis.includes(api.slug)) throw apiNotAllowed(api, principal, allowance.apis)
  if (!mayWrite && (endpoint.declaration.effect ?? 'read') !== 'read') throw writeNotAllowed(api, endpoint, principal)
  if (mode !== 'test' && missing !== undefined) throw liveCallsRefused(missing)
  if (!reaches(tier, api.tierRequired)) throw planTooLow(api, tier)
}

function apiNotAllowed({ slug }: Api, { connection }: Principal, apis: readonly string[]): GatewayError {
  return new GatewayError('KEY_API_FORBIDDEN', {
    message: connection
      ? `The account does not let this application call the API ${slug}.`
      : `The owner of this key does not let it call the API ${slug}.`,
    tokens: { allowed: apis.join(',') },
  })
}

function writeNotAllowed({ slug }: Api, { path }: ApiEndpoint, { connection }: Principal): GatewayError {
  const holder = connection ? 'application' : 'key'
  return new GatewayError('KEY_API_FORBIDDEN', {
    message: `${slug}${path} changes something, and this ${holder} may only read.`,
    hint: connection
      ? 'Allow the application to change data under Account, Connected apps'
      : 'Allow the key to change data with mayWrite (PATCH /v1/keys/{id}, or Change on the page of keys), or use the session of a log-in',
  })
}

/** The refusal of live calls by the operator's sign-up policy. */
export function liveCallsRefused(missing: NonNullable<Principal['missingForLiveCalls']>): GatewayError {
  return missing === 'approval'
    ? new GatewayError('FORBIDDEN', {
        message: 'The operator has not approved this account for live calls yet.',
        hint: 'Use a test key meanwhile, or ask the operator',
      })
    : new GatewayError('FORBIDDEN', {
        message: 'Live calls are refused until you have verified the email address of this account.',
        hint: 'Open the link in the mail, or request the mail again with POST /v1/auth/verification',
      })
}

function planTooLow({ slug, tierRequired }: Api, tier: Tier): GatewayError {
  return new GatewayError('PLAN_UPGRADE_REQUIRED', {
    message: `The API ${slug} needs the ${planOf(tierRequired)} plan; yours is ${planOf(tier)}.`,
    tokens: { upgrade_to: tierRequired },
  })
}
