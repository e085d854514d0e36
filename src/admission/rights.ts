import type { FastifyRequest } from 'fastify'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import { type Api, isCallable, PAUSED_RETRY_MS } from '../catalog/catalog.ts'
import type { Tier } from '../catalog/upstream.ts'
import { GatewayError } from '../errors.ts'
import { isTierAtLeast, PLAN_OF_TIER } from '../limits/plans.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { Allowance, Principal } from './authenticate.ts'
import type { CallTarget } from './parameters.ts'

/**
 * Checks a call's rights. The owner of a key or a connection decides from where it may be used,
 * which APIs it may call and whether it may change anything. The operator's sign-up policy decides
 * who may make live calls. Fails closed.
 *
 * @throws GatewayError KEY_ADDRESS_FORBIDDEN, KEY_API_FORBIDDEN, FORBIDDEN or PLAN_UPGRADE_REQUIRED
 */
export function checkRights(target: CallTarget, principal: Principal, caller: CallerAddress): void {
  const { allowance } = principal
  if (allowance?.addresses) checkAddress(principal, caller)
  checkTarget(target, { ...principal, apis: allowance?.apis })
}

/** What a caller may call, from whatever address. */
export interface TargetRights
  extends Pick<Principal, 'connection' | 'mayWrite' | 'mode' | 'missingForLiveCalls' | 'tier'> {
  /** Slugs of the APIs; absent: all. */
  apis?: readonly string[] | null | undefined
}

/**
 * As `checkRights`, without the address. A worker repeats it for a call that has waited.
 *
 * @throws GatewayError KEY_API_FORBIDDEN, FORBIDDEN or PLAN_UPGRADE_REQUIRED
 */
export function checkTarget({ api, endpoint }: CallTarget, rights: TargetRights): void {
  const { apis, mayWrite, mode, missingForLiveCalls: missing, tier } = rights
  if (apis && !apis.includes(api.slug)) throw apiNotAllowed(api, rights, apis)
  if (!mayWrite && (endpoint.declaration.effect ?? 'read') !== 'read') throw writeNotAllowed(api, endpoint, rights)
  if (mode !== 'test' && missing !== undefined) throw liveCallsRefused(missing)
  if (!isTierAtLeast(tier, api.tierRequired)) throw planTooLow(api, tier)
}

/** A getter of the request. It is only read for credentials with a list of addresses. */
type CallerAddress = Pick<FastifyRequest, 'ip'>

/** @throws GatewayError KEY_ADDRESS_FORBIDDEN */
export function checkAddress(principal: Principal, caller: CallerAddress): void {
  if (!principal.allowance || mayComeFrom(principal.allowance, caller)) return
  throw new GatewayError('KEY_ADDRESS_FORBIDDEN', {
    message: principal.connection
      ? `The account does not allow this application to call from the address ${caller.ip}.`
      : `The owner of this key does not allow calls from the address ${caller.ip}.`,
    tokens: { address: caller.ip },
  })
}

function mayComeFrom({ addresses }: Allowance, caller: CallerAddress): boolean {
  return !addresses || addresses.has(caller.ip)
}

/**
 * The name under which requests are counted that no plan counts. Requests from a forbidden address
 * are counted separately, so that a thief of a key cannot use up what its owner may send.
 */
export function requestSubject(principal: Principal, caller: CallerAddress): string {
  const { accountId, allowance } = principal
  return !allowance || mayComeFrom(allowance, caller) ? accountId : `elsewhere:${accountId}`
}

function apiNotAllowed({ slug }: Api, { connection }: TargetRights, apis: readonly string[]): GatewayError {
  return new GatewayError('KEY_API_FORBIDDEN', {
    message: connection
      ? `The account does not allow this application to call the API ${slug}.`
      : `The owner of this key does not allow calls of the API ${slug}.`,
    tokens: { allowed: apis.join(',') },
  })
}

function writeNotAllowed({ slug }: Api, { path }: ApiEndpoint, { connection }: TargetRights): GatewayError {
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
        message: 'The gateway refuses live calls until you have verified the email address of this account.',
        hint: 'Open the link in the mail, or request the mail again with POST /v1/auth/verification',
      })
}

function planTooLow({ slug, tierRequired }: Api, tier: Tier): GatewayError {
  return new GatewayError('PLAN_UPGRADE_REQUIRED', {
    message: `The API ${slug} needs the ${PLAN_OF_TIER[tierRequired]} plan; yours is ${PLAN_OF_TIER[tier]}.`,
    tokens: { upgrade_to: tierRequired },
  })
}

/**
 * The caller's own key for a live call; undefined if the gateway's own access is used. A key that
 * the upstream refused is not replaced by the gateway's access, and no key helps if the operator
 * has not enabled the API.
 * @throws GatewayError API_NOT_ENABLED, API_PAUSED, PROVIDER_KEY_REQUIRED or PROVIDER_KEY_INVALID
 */
export function chooseProviderKey(api: Api, principal: Principal): CallJob['providerKey'] {
  // The recorded example answers test calls, whatever is enabled.
  const isTest = principal.mode === 'test'
  if (!isTest && !isCallable(api)) throw new GatewayError('API_NOT_ENABLED', { tokens: { api: api.slug } })
  if (api.pausedMode === 'refuse')
    throw new GatewayError('API_PAUSED', { tokens: { api: api.slug }, retryAfterMs: PAUSED_RETRY_MS })
  if (isTest) return undefined
  const { credential } = api.upstream
  const own =
    credential && credential.accessMode !== 'platform_managed' ? principal.providerKeys.get(api.slug) : undefined
  const refuse = (code: 'PROVIDER_KEY_REQUIRED' | 'PROVIDER_KEY_INVALID') =>
    new GatewayError(code, {
      tokens: { api: api.slug },
      // An application may make calls but may not change the account, so the hint tells it to ask
      // the user.
      ...(principal.connection ? { hint: ASK_USER[code] } : {}),
    })
  if (own?.status === 'invalid') throw refuse('PROVIDER_KEY_INVALID')
  if (own) return { id: own.id, bucket: own.bucket, ...(own.status === 'valid' ? {} : { isUnproven: true }) }
  if (api.needsCallerKey) throw principal.isTeamKey ? noKeyOfTeam(api) : refuse('PROVIDER_KEY_REQUIRED')
  return undefined
}

const ASK_USER = {
  PROVIDER_KEY_REQUIRED: 'Ask the user to save a provider key in the portal, on /account/provider-keys',
  PROVIDER_KEY_INVALID: 'Ask the user to replace the provider key in the portal, on /account/provider-keys',
}

/**
 * The refusal for a team's key. A provider key that somebody saves for an own account would not
 * help, because a team's key uses only the provider keys of the team.
 */
function noKeyOfTeam({ slug }: Api): GatewayError {
  return new GatewayError('PROVIDER_KEY_REQUIRED', {
    message: 'This API needs a provider key, and the team of this key has none.',
    hint: 'Have an owner or admin of the team save one with PUT /v1/provider-keys/{apiSlug}?teamId=',
    tokens: { api: slug },
  })
}
