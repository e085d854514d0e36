import { type Api, isCallable, PAUSED_RETRY_MS } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { Principal } from './authenticate.ts'

/**
 * The caller's own key for a live call; undefined if the gateway's own access is used. That does
 * not replace a key which the upstream refused, and no key opens what the operator has not enabled.
 * @throws GatewayError API_NOT_ENABLED, API_PAUSED, PROVIDER_KEY_REQUIRED or PROVIDER_KEY_INVALID
 */
export function chooseProviderKey(api: Api, principal: Principal): CallJob['providerKey'] {
  // The recorded example answers test calls, whatever is enabled.
  if (principal.mode === 'test') {
    refuseWhenPaused(api)
    return undefined
  }
  const { credential } = api.upstream
  const own =
    credential && credential.accessMode !== 'platform_managed' ? principal.providerKeys.get(api.slug) : undefined
  const refuse = (code: 'PROVIDER_KEY_REQUIRED' | 'PROVIDER_KEY_INVALID') =>
    new GatewayError(code, {
      tokens: { api: api.slug },
      // An application may call, and change nothing of the account.
      ...(principal.connection ? { hint: ASK_USER[code] } : {}),
    })
  if (!isCallable(api)) throw new GatewayError('API_NOT_ENABLED', { tokens: { api: api.slug } })
  refuseWhenPaused(api)
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
 * A key that somebody saves for the own account would not help: a team's key uses only the keys of
 * the team.
 */
function noKeyOfTeam({ slug }: Api): GatewayError {
  return new GatewayError('PROVIDER_KEY_REQUIRED', {
    message: 'This API needs a provider key, and the team of this key has none.',
    hint: 'Have an owner or admin of the team save one with PUT /v1/provider-keys/{apiSlug}?teamId=',
    tokens: { api: slug },
  })
}

function refuseWhenPaused({ slug, pausedMode }: Api): void {
  if (pausedMode !== 'refuse') return
  throw new GatewayError('API_PAUSED', { tokens: { api: slug }, retryAfterMs: PAUSED_RETRY_MS })
}
