import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { LEASE_MS_MAX } from './account-limits.ts'
import { RETRY_MS_MIN } from './limit-refusal.ts'

/** Calls of an account whose expected end is noted: more than its plan has in flight. */
const NOTES_MAX = 1_000

const expectEndScript = loadScript(new URL('./lua/expect-end.lua', import.meta.url), { NOTES_MAX, LEASE_MS_MAX })

type RunningCall = Pick<CallJob, 'id' | 'accountId' | 'mode' | 'slug' | 'limitsAcquiredAt' | 'deadline'>

/**
 * Notes when a call is expected to end: after the forecast wait for a permit and the time that half
 * of the upstream's answers take, and by its deadline. If the calls in flight refuse a call of the
 * same account at any node, `acquire.lua` quotes the soonest end. A call that takes a second or
 * less needs no note, because no refusal quotes less. Nobody waits for the note.
 *
 * @param etaMs forecast wait for a permit
 */
export function noteExpectedEnd(
  { redis, health }: { redis: RedisConnection; health: { usualMs: (slug: string) => number | undefined } },
  { id, accountId, mode, slug, limitsAcquiredAt, deadline }: RunningCall,
  etaMs: number,
): void {
  const workMs = mode === 'test' ? 0 : (health.usualMs(slug) ?? 0)
  const endsAt = Math.ceil(Math.min(limitsAcquiredAt + etaMs + workMs, deadline))
  if (endsAt - limitsAcquiredAt <= RETRY_MS_MIN) return
  const noting = expectEndScript.run(redis, [accountKeys.expectedEnds(accountId, mode)], [limitsAcquiredAt, endsAt, id])
  // Fails open: without a note a refusal quotes a second.
  noting.catch(() => undefined)
}
