import Type, { type Static } from 'typebox'
import type { Api } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import { TierName } from './change-user.ts'

export const CapsAnswer = Type.Object({
  concurrency: Type.Integer(),
  rates: Type.Array(Type.Object({ max: Type.Integer(), seconds: Type.Number() })),
})

/**
 * An upstream as operators see it, with its present settings. It says whether there is a key, but
 * never shows the key.
 */
export const UpstreamAnswer = Type.Object({
  slug: Type.String(),
  displayName: Type.String(),
  baseUrl: Type.String(),
  enabled: Type.Boolean({ description: 'Whether callers can call the API without a key of their own' }),
  needsCallerKey: Type.Boolean({ description: 'Whether only callers with a key of their own can call the API' }),
  switchedOff: Type.Boolean({ description: 'Whether an operator has disabled the API, so that nobody can call it' }),
  tierRequired: TierName,
  accessMode: nullable(Type.Enum(['platform_managed', 'byok_available', 'byok_required'])),
  hasKey: Type.Boolean(),
  keyUnreadable: Type.Boolean({ description: 'Whether a key is stored that no secret of ENCRYPTION_KEY opens' }),
  caps: CapsAnswer,
  paused: nullable(
    Type.Enum(['hold', 'refuse'], {
      description: 'Whether calls of the API wait (hold) or are refused (refuse); null: the API is not paused',
    }),
  ),
})

export function describeUpstream(api: Api): Static<typeof UpstreamAnswer> {
  return {
    slug: api.slug,
    displayName: api.upstream.displayName,
    baseUrl: api.baseUrl,
    enabled: api.enabled,
    needsCallerKey: api.needsCallerKey && !api.isSwitchedOff,
    switchedOff: api.isSwitchedOff,
    tierRequired: api.tierRequired,
    accessMode: api.upstream.credential?.accessMode ?? null,
    hasKey: api.key !== undefined,
    keyUnreadable: api.isKeyUnreadable,
    caps: api.caps,
    paused: api.pausedMode ?? null,
  }
}
