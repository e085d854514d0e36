import { setTimeout as delay } from 'node:timers/promises'
import { forbiddenModes } from '../accounts/trust.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { findUser } from '../db/users.ts'
import { readAsyncCall } from '../queue/async-call.ts'
import { announceCancel } from '../queue/call-queue.ts'
import { forgetResults } from '../queue/results.ts'
import { accountKeys } from '../redis/keys.ts'
import { type CancelDeps, cancelCall } from './cancel-call.ts'

export interface CancelAccountDeps extends CancelDeps {
  db: Db
  config: Pick<Config, 'accounts' | 'callTimeoutMs'>
}

const PAUSE_MS = 250

/**
 * Cancels the running calls of an account that may no longer make calls. Call it after the change
 * is announced, so that no further call is admitted. It returns after the first look. At that time
 * a batch may have handed a lease to its next call, and an asynchronous call may not be recorded
 * yet. So it continues to look in the background until no call is running, the account may make
 * calls again, or no caller can still be waiting. Fails open: if Redis or Postgres fails, the calls
 * that were not found run until their deadlines.
 */
export async function cancelAccountCalls(deps: CancelAccountDeps, accountId: string): Promise<void> {
  if (await hasCalls(deps, accountId)) void cancelRest(deps, accountId)
}

/**
 * Cancels the running calls of a deleted account, and deletes results that it has not fetched. Call
 * it after the change is announced.
 */
export async function forgetAccount(deps: CancelAccountDeps, accountId: string): Promise<void> {
  await cancelAccountCalls(deps, accountId)
  // A result that is not found here expires within 15 minutes.
  await forgetResults(deps.redis, accountId).catch((error) =>
    deps.log.warn({ err: error, accountId }, 'failed to delete the kept results of an account that is gone'),
  )
}

async function cancelRest(deps: CancelAccountDeps, accountId: string): Promise<void> {
  const end = performance.now() + deps.config.callTimeoutMs
  while (performance.now() < end && deps.redis.status !== 'end') {
    await delay(PAUSE_MS, undefined, { ref: false })
    if (!(await hasCalls(deps, accountId))) return
  }
}

/**
 * Cancels the calls that are running now.
 * @returns whether a call was running, or may be
 */
async function hasCalls(deps: CancelAccountDeps, accountId: string): Promise<boolean> {
  try {
    const account = await findUser(deps.db, accountId)
    // An account that was deleted makes neither live nor test calls.
    const modes = account ? forbiddenModes(account, deps.config.accounts.signup) : (['live', 'test'] as const)
    const inFlight = await Promise.all(
      modes.map((mode) => deps.redis.zrange(accountKeys.inFlight(accountId, mode), '0', '-1')),
    )
    const ids = inFlight.flat()
    await Promise.all(ids.map((id) => cancelOne(deps, { id, accountId })))
    return ids.length > 0
  } catch (error) {
    deps.log.warn({ err: error, account: accountId }, 'failed to cancel the calls of an account')
    return true
  }
}

async function cancelOne(deps: CancelAccountDeps, { id, accountId }: { id: string; accountId: string }): Promise<void> {
  const call = await readAsyncCall(deps.redis, { id, accountId })
  if (call) await cancelCall(deps, call)
  // The node waits for a reply, which the worker that has or gets the call will send.
  else await announceCancel(deps.redis, '*', id)
}
