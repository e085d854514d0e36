import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import { planOf, reaches } from '../limits/plans.ts'
import type { Principal } from './authenticate.ts'

/** @throws GatewayError KEY_API_FORBIDDEN, FORBIDDEN or PLAN_UPGRADE_REQUIRED */
export function checkRights(api: Api, endpoint: ApiEndpoint, principal: Principal): void {
  checkCredential(api, principal)
  checkMayWrite(api, endpoint, principal)
  checkLiveCalls(principal)
  checkPlan(api, principal)
}

function checkCredential({ slug }: Api, { allowance, connection }: Principal): void {
  if (!allowance?.apis || allowance.apis.includes(slug)) return
  throw new GatewayError('KEY_API_FORBIDDEN', {
    message: connection
      ? `The account does not let this application call the API ${slug}.`
      : `The owner of this key does not let it call the API ${slug}.`,
    tokens: { allowed: allowance.apis.join(',') },
  })
}

/**
 * Whoever owns a key or a connection decides whether it may change anything. Fails closed.
 *
 * @throws GatewayError KEY_API_FORBIDDEN
 */
function checkMayWrite({ slug }: Api, { path, endpoint }: ApiEndpoint, { mayWrite, connection }: Principal): void {
  if (mayWrite || (endpoint.effect ?? 'read') === 'read') return
  const holder = connection ? 'application' : 'key'
  throw new GatewayError('KEY_API_FORBIDDEN', {
    message: `${slug}${path} changes something, and this ${holder} may only read.`,
    hint: connection
      ? 'Allow the application to change data under Account, Connected apps'
      : 'Allow the key to change data with mayWrite (PATCH /v1/keys/{id}, or Change on the page of keys), or use the session of a log-in',
  })
}

/** By the operator's sign-up policy. @throws GatewayError FORBIDDEN */
export function checkLiveCalls({ mode, missing }: Pick<Principal, 'mode' | 'missing'>): void {
  if (mode === 'test' || missing === undefined) return
  throw missing === 'approval'
    ? new GatewayError('FORBIDDEN', {
        message: 'The operator has not approved this account for live calls yet.',
        hint: 'Use a test key meanwhile, or ask the operator',
      })
    : new GatewayError('FORBIDDEN', {
        message: 'Live calls are refused until you have verified the email address of this account.',
        hint: 'Open the link in the mail, or request the mail again with POST /v1/auth/verification',
      })
}

function checkPlan(api: Api, principal: Principal): void {
  if (!reaches(principal.tier, api.tierRequired)) {
    throw new GatewayError('PLAN_UPGRADE_REQUIRED', {
      message: `The API ${api.slug} needs the ${planOf(api.tierRequired)} plan; yours is ${planOf(principal.tier)}.`,
      tokens: { upgrade_to: api.tierRequired },
    })
  }
}
