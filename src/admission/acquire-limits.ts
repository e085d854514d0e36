import type { SingleFlight } from '../async/single-flight.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { countMonthUsage } from '../db/usage.ts'
import { type AccountLimits, type LimitQuery, type LimitState, STALE } from '../limits/account-limits.ts'
import type { CallCompletionBatcher } from '../limits/call-completion-batcher.ts'
import type { MonthNotices } from '../limits/month-notices.ts'
import { planOf } from '../limits/plans.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { isUnacknowledged } from '../redis/redis-error.ts'
import type { Principal } from './authenticate.ts'

export interface LimitDeps {
  config: Config
  db: Db
  redis: RedisConnection
  health: { now: () => number }
  accountLimits: AccountLimits
  completions: Pick<CallCompletionBatcher, 'flush' | 'compensate'>
  /** Shared look-ups of a month's usage in Postgres, for when Redis has no count. */
  monthLoads: SingleFlight<number>
  monthNotices: Pick<MonthNotices, 'note'>
}

/**
 * How long after its call's deadline a lease ends by itself, if the node has died, milliseconds.
 */
const LEASE_GRACE_MS = 10_000

/**
 * @returns STALE for rights that have changed
 * @throws what the limits refuse with, and what Redis and Postgres throw
 */
export async function acquireLimits(
  deps: LimitDeps,
  principal: Principal,
  { callId, timeoutMs }: { callId: string; timeoutMs: number },
): Promise<LimitState | typeof STALE> {
  const { config, completions, accountLimits, monthNotices } = deps
  // A sequential caller must not find its previous call in flight: pending releases are sent first.
  completions.flush(principal)
  try {
    const limits = await accountLimits.acquire({
      ...limitQuery(deps, principal, timeoutMs),
      subject: principal,
      tier: principal.tier,
      plan: config.plans[planOf(principal.tier)],
      callId,
    })
    if (limits !== STALE) monthNotices.note(principal, limits)
    return limits
  } catch (error) {
    if (isUnacknowledged(error))
      completions.compensate({ account: principal, callIds: [callId], at: deps.health.now() })
    throw error
  }
}

/**
 * What the limit script needs to know of an account. `timeoutMs` is the time-out of the call, which
 * the call's lease outlasts; 0 for a reading, which takes no lease.
 */
export function limitQuery(
  { db, monthLoads }: Pick<LimitDeps, 'db' | 'monthLoads'>,
  { accountId, credential }: Pick<Principal, 'accountId' | 'credential'>,
  timeoutMs: number,
): Omit<LimitQuery, 'subject' | 'plan'> {
  const load = (month: string, credentialId?: string) =>
    monthLoads.run(`${accountId} ${credentialId ?? ''} ${month}`, () =>
      countMonthUsage(db, { userId: accountId, credentialId }, month),
    )
  return {
    leaseMs: timeoutMs + LEASE_GRACE_MS,
    // Fails closed: without Redis' count and without the ledger nobody knows what is left.
    loadMonthUsed: (month) => load(month),
    loadCredentialUsed: credential && ((month) => load(month, credential.id)),
  }
}
