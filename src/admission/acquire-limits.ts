import type { SingleFlight } from '../async/single-flight.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { countMonthUsage } from '../db/usage.ts'
import type { AccountLimits, BatchGrant, LimitQuery, LimitSubject } from '../limits/account-limits.ts'
import type { CallEndBatcher } from '../limits/call-end-batcher.ts'
import type { LimitState } from '../limits/limit-state.ts'
import type { MonthNotices } from '../limits/month-notices.ts'
import { PLAN_OF_TIER } from '../limits/plans.ts'
import type { RedisClock } from '../redis/clock.ts'
import { isUnacknowledged } from '../redis/redis-error.ts'
import type { Principal } from './authenticate.ts'

export interface LimitDeps {
  config: Config
  db: Db
  clock: Pick<RedisClock, 'now'>
  accountLimits: AccountLimits
  callEnds: Pick<CallEndBatcher, 'flush' | 'compensate'>
  /**
   * Shares concurrent reads of a month's usage in Postgres, which are needed if Redis has no count.
   */
  monthLoads: SingleFlight<number>
  /** Undefined if nothing is mailed. */
  monthNotices: Pick<MonthNotices, 'note'> | undefined
}

/** How long after its call's deadline a lease expires if its node has died, milliseconds. */
export const LEASE_GRACE_MS = 10_000

/**
 * Takes the limits of one call of an account.
 *
 * @throws StaleRightsError, the refusal of the limits, and what Redis and Postgres throw
 */
export async function acquireLimits(
  deps: LimitDeps,
  principal: Principal,
  { callId, timeoutMs }: { callId: string; timeoutMs: number },
): Promise<LimitState> {
  // Pending ends are sent first, so that a sequential caller does not find its previous call in
  // flight.
  deps.callEnds.flush(principal)
  const query = { ...limitQuery(deps, principal, timeoutMs), callId }
  const limits = await orCompensate(deps, { principal, callIds: [callId] }, deps.accountLimits.acquire(query))
  deps.monthNotices?.note(principal, limits)
  return limits
}

/** As `acquireLimits`, for the calls of a batch in one step: either all, or as many as fit. */
export async function acquireBatchLimits(
  deps: LimitDeps,
  principal: Principal,
  { callIds, take, timeoutMs }: { callIds: string[]; take: 'all' | 'fit'; timeoutMs: number },
): Promise<BatchGrant> {
  deps.callEnds.flush(principal)
  const query = { ...limitQuery(deps, principal, timeoutMs), callIds, take }
  const grant = await orCompensate(deps, { principal, callIds }, deps.accountLimits.acquireBatch(query))
  deps.monthNotices?.note(principal, grant.state)
  return grant
}

/** Gives back units that Redis may have given without an acknowledgement. */
async function orCompensate<T>(
  { callEnds, clock }: LimitDeps,
  { principal, callIds }: { principal: Principal; callIds: string[] },
  acquiring: Promise<T>,
): Promise<T> {
  try {
    return await acquiring
  } catch (error) {
    if (isUnacknowledged(error)) callEnds.compensate({ account: principal, callIds, at: clock.now() })
    throw error
  }
}

/**
 * The values that the limit script needs about an account. `timeoutMs` is the time-out of the call,
 * which the call's lease outlasts; 0 for a reading, which takes no lease.
 */
export function limitQuery(
  { config, db, monthLoads }: Pick<LimitDeps, 'config' | 'db' | 'monthLoads'>,
  subject: LimitSubject & Pick<Principal, 'tier'>,
  timeoutMs: number,
): LimitQuery {
  const { accountId, tier } = subject
  return {
    subject,
    tier,
    plan: config.plans[PLAN_OF_TIER[tier]],
    leaseMs: timeoutMs + LEASE_GRACE_MS,
    // Fails closed: without Redis' count and without the ledger, it is unknown what is left.
    loadUsed: (month, credentialId) =>
      monthLoads.run(`${accountId} ${credentialId ?? ''} ${month}`, () =>
        countMonthUsage(db, { userId: accountId, credentialId }, month),
      ),
  }
}
