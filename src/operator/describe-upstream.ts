import Type, { type Static } from 'typebox'
import type { Api } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'

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
  enabled: Type.Boolean({ description: 'Whether calls without a key of the caller can be made' }),
  needsCallerKey: Type.Boolean({ description: 'Whether calls with a key of the caller alone can be made' }),
  switchedOff: Type.Boolean({ description: 'An operator switched it off: nobody can call it' }),
  tierRequired: Type.Enum(['developer', 'pro', 'business', 'enterprise']),
  accessMode: nullable(Type.Enum(['platform_managed', 'byok_available', 'byok_required'])),
  hasKey: Type.Boolean(),
  keyUnreadable: Type.Boolean({ description: 'A key is stored, and ENCRYPTION_KEY has no secret that opens it' }),
  caps: CapsAnswer,
  paused: nullable(
    Type.Enum(['hold', 'refuse'], { description: 'Its queue is paused: calls wait, or are refused; null: it runs' }),
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
