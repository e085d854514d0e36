import type { Tier } from '../catalog/upstream.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { loadScript } from '../redis/script.ts'
import {
  LEASE_MS_MAX,
  type LimitReading,
  type LimitState,
  type LimitSubject,
  limitKeys,
  MINUTE_MS,
  monthOf,
  runInMonth,
  STALE,
} from './account-limits.ts'
import { limitRefusal } from './limit-refusal.ts'

const scripts = {
  acquire: loadScript(new URL('./lua/acquire-batch.lua', import.meta.url), { MINUTE_MS, LEASE_MS_MAX }),
  advance: loadScript(new URL('./lua/advance-batch.lua', import.meta.url)),
}

/** Calls that are to take units of their account's limits in one step. */
export interface BatchRequest extends LimitReading {
  tier: Tier
  callIds: string[]
  /** Whether all must fit, or as many as do. */
  take: 'all' | 'fit'
}

/** What a batch took. */
export interface BatchGrant {
  state: LimitState
  /** The first calls, which have their units of minute and month. */
  granted: number
  /** The first of them, which may be in flight now; the others wait for one of these to end. */
  leases: number
}

/**
 * Takes the units of a batch, exactly, over any number of nodes.
 *
 * @returns what was taken, or STALE when the account must be looked up again
 * @throws GatewayError CONCURRENCY_LIMIT_EXCEEDED, RATE_LIMIT_EXCEEDED or MONTHLY_QUOTA_EXCEEDED, with when the calls
 *   fit; nothing is taken
 */
export async function acquireBatch(redis: RedisConnection, request: BatchRequest): Promise<BatchGrant | typeof STALE> {
  const more = [request.take, ...request.callIds]
  const result = await runInMonth(redis, request, { callId: '', script: scripts.acquire, more })
  if (result === STALE) return STALE
  const { decision, state, counts } = result
  if (decision !== 'ok') throw limitRefusal(decision, state, request)
  const [granted = 0, leases = 0] = counts.map(Number)
  return { state, granted, leases }
}

/** A call of a batch that ended. */
export interface EndedBatchCall {
  callId: string
  comesBack: 'nothing' | 'month' | 'all'
  /** The call that goes on with its lease. */
  next?: string | undefined
}

/** What is settled of a batch in one step. */
export interface BatchStep {
  ended?: EndedBatchCall[]
  leaseMs: number
  /** Calls that will not be made. */
  dropped?: string[]
}

/** Ends calls of a batch that was admitted at an instant, and lets the next ones be in flight in their place. */
export async function advanceBatch(
  redis: RedisConnection,
  { subject, at }: { subject: LimitSubject; at: number },
  { ended = [], leaseMs, dropped = [] }: BatchStep,
): Promise<void> {
  const [, minute = '', inFlight = '', month = '', ...connection] = limitKeys(subject, monthOf(at).name)
  const keys = [minute, inFlight, subject.mode === 'live' ? month : `${month}:none`, ...connection]
  const calls = ended.flatMap(({ callId, comesBack, next = '' }) => [callId, comesBack, next])
  await scripts.advance.run(redis, keys, ['', leaseMs, ended.length, ...calls, ...dropped])
}
