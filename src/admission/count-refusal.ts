import type { HealthCache } from '../health/health-watch.ts'
import type { CallCompletionBatcher } from '../limits/call-completion-batcher.ts'
import type { Principal } from './authenticate.ts'

export interface RefusalDeps {
  completions: Pick<CallCompletionBatcher, 'countRefusal'>
  /** Redis' clock, which decides the day that usage counts for. */
  health: Pick<HealthCache, 'now'>
}

/** Shows a refused call in the account's usage. It is not charged and costs no round trip. */
export function countRefusal(
  { completions, health }: RefusalDeps,
  { accountId, keyId, mode }: Pick<Principal, 'accountId' | 'keyId' | 'mode'>,
  refused: { slug: string; status: number },
): void {
  const key = keyId === undefined ? {} : { keyId }
  completions.countRefusal({ accountId, mode, ...key, ...refused, at: health.now() })
}
