import type { ErrorCode } from '../errors.ts'
import type { HealthCache } from '../health/health-watch.ts'
import type { CallCompletionBatcher } from '../limits/call-completion-batcher.ts'
import type { EndStep } from '../limits/end-calls.ts'
import { countedCredential } from '../limits/limits-of-credential.ts'
import type { Principal } from './authenticate.ts'

export interface RefusalDeps {
  completions: Pick<CallCompletionBatcher, 'end'>
  /** Redis' clock, which decides the day that usage counts for. */
  health: Pick<HealthCache, 'now'>
}

/**
 * A call that is refused. `taken`: the limits that it took, and when, Redis' clock; absent if it
 * took none.
 */
export interface RefusedCall {
  slug: string
  code: ErrorCode
  taken?: { id: string; limitsAcquiredAt: number } | undefined
}

/**
 * Shows a refused call in the account's usage, and gives back all that it took. Without limits it
 * costs no round trip.
 */
export function endRefusedCall(
  { completions, health }: RefusalDeps,
  principal: Pick<Principal, 'accountId' | 'keyId' | 'mode' | 'credential'>,
  { slug, code, taken }: RefusedCall,
): Promise<EndStep> {
  const { accountId, keyId, mode } = principal
  const credentialId = countedCredential(principal)
  const key = { ...(keyId === undefined ? {} : { keyId }), ...(credentialId === undefined ? {} : { credentialId }) }
  return completions.end(
    { accountId, mode, ...key, slug, limitsAcquiredAt: health.now(), ...taken },
    { code, reach: 'refused' },
  )
}
