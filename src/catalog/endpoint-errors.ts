import type { ErrorCode } from '../errors.ts'
import type { ApiEndpoint } from './api-endpoint.ts'
import type { Api } from './catalog.ts'

/**
 * The error codes that calls of an endpoint can return, besides the codes of every request
 * (authentication, 500).
 */
export function endpointErrors(api: Api, { declaration: endpoint, parameters }: ApiEndpoint): ErrorCode[] {
  const mode = api.upstream.credential?.accessMode ?? ''
  const codes: [isPossible: boolean, code: ErrorCode][] = [
    [parameters.length > 0, 'INVALID_PARAMETER'],
    [parameters.length > 0, 'UPSTREAM_REJECTED'],
    [mode === 'byok_required' || api.needsCallerKey, 'PROVIDER_KEY_REQUIRED'],
    [mode.startsWith('byok'), 'PROVIDER_KEY_INVALID'],
    [api.tierRequired !== 'developer', 'PLAN_UPGRADE_REQUIRED'],
    [parameters.some(({ required }) => required), 'UPSTREAM_NOT_FOUND'],
    [true, 'RATE_LIMIT_EXCEEDED'],
    [true, 'UPSTREAM_ERROR'],
    [true, 'UPSTREAM_TIMEOUT'],
    [endpoint.effect === 'once', 'OUTCOME_UNKNOWN'],
    [true, 'UPSTREAM_UNAVAILABLE'],
    [true, 'UPSTREAM_CAP_EXHAUSTED'],
    [!api.enabled, 'API_NOT_ENABLED'],
  ]
  return codes.filter(([isPossible]) => isPossible).map(([, code]) => code)
}
