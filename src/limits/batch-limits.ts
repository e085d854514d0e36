import type { Tier } from '../catalog/upstream.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { loadScript } from '../redis/script.ts'
import {
  LEASE_MS_MAX,
  type LimitQuery,
  type LimitState,
  type LimitSubject,
  limitKeys,
  MINUTE_MS,
  runInMonth,
  STALE,
} from './account-limits.ts'
import { limitRefusal } from './limit-refusal.ts'
import { monthOf } from './month.ts'

const scripts = {
  acquire: loadScript(new URL('./lua/acquire-batch.lua', import.meta.url), { MINUTE_MS, LEASE_MS_MAX }),
  advance: loadScript(new URL('./lua/advance-batch.lua', import.meta.url), { LEASE_MS_MAX }),
}

export interface BatchRequest extends LimitQuery {
  tier: Tier
  callIds: string[]
  /** Whether all must fit, or as many as do. */
  take: 'all' | 'fit'
}

export interface BatchGrant {
  state: LimitState
  /** The first calls, which have their units. */
  granted: number
  /** The first of them, which may be in flight now. */
  leases: number
  /** Why the others have none, as `limitRefusal` reads it. */
  cutBy: string
}

/** As `AccountLimits.acquire`, for the calls of a batch. @returns STALE when the account must be looked up again */
export async function acquireBatch(redis: RedisConnection, request: BatchRequest): Promise<BatchGrant | typeof STALE> {
  const more = [request.take, ...request.callIds]
  const result = await runInMonth(redis, request, { callId: '', script: scripts.acquire, more })
  if (result === STALE) return STALE
  const { decision, state, further } = result
  if (decision !== 'ok') throw limitRefusal(decision, state, request)
  const [granted, leases, cutBy] = further
  return { state, granted: Number(granted), leases: Number(leases), cutBy: String(cutBy) }
}

export interface EndedBatchCall {
  callId: string
  /** `month`: its unit of the month alone. */
  refund: 'nothing' | 'month' | 'all'
  /** The call that gets its lease. */
  next?: string | undefined
}

export interface BatchStep {
  ended?: EndedBatchCall[]
  leaseMs: number
  dropped?: string[]
}

/** What came of a step. */
export interface AdvancedBatch {
  /** How many of the ended calls had a lease. */
  hadLease: number
  /** The account's version when the step ran: if it is another, the caller's rights may have changed. */
  version: string
}

/** Ends calls of a batch and hands their leases to the next calls, in one atomic step. */
export async function advanceBatch(
  redis: RedisConnection,
  { subject, at }: { subject: LimitSubject; at: number },
  { ended = [], leaseMs, dropped = [] }: BatchStep,
): Promise<AdvancedBatch> {
  const [version = '', minute = '', inFlight = '', month = '', ...connection] = limitKeys(subject, monthOf(at).name)
  const keys = [version, minute, inFlight, ...(subject.mode === 'live' ? [month, ...connection] : [])]
  const calls = ended.flatMap(({ callId, refund, next = '' }) => [callId, refund, next])
  const result = await scripts.advance.run(redis, keys, ['', leaseMs, ended.length, ...calls, ...dropped])
  const [hadLease, current] = result as [number, string]
  return { hadLease, version: current }
}

/** Refunds all that the calls of a batch took, with a lease or without; repeating it does nothing. @returns whether one had one */
export async function refundBatch(
  redis: RedisConnection,
  subject: LimitSubject,
  { callIds, at }: { callIds: string[]; at: number },
): Promise<boolean> {
  const ended = callIds.map((callId) => ({ callId, refund: 'all' as const }))
  const { hadLease } = await advanceBatch(redis, { subject, at }, { ended, dropped: callIds, leaseMs: 0 })
  return hadLease > 0
}
