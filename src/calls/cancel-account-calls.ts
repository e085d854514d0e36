import { setTimeout as delay } from 'node:timers/promises'
import { forbiddenModes } from '../accounts/trust.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { findUser } from '../db/users.ts'
import { readAsyncCall } from '../queue/async-call.ts'
import { announceCancel } from '../queue/call-queue.ts'
import { accountKeys } from '../redis/keys.ts'
import { type CancelDeps, cancelCall } from './cancel-call.ts'

export interface CancelAccountDeps extends CancelDeps {
  db: Db
  config: Pick<Config, 'accounts' | 'callTimeoutMs'>
}

const PAUSE_MS = 250

/**
 * Cancels what an account has in flight, if it may make no calls any more. Call it after the change
 * is announced: then nothing is admitted that was not in flight. Returns after the first look. A
 * batch may have handed a lease to its next call meanwhile, and an asynchronous call may not have
 * been recorded yet: so it looks again, in the background, until nothing is in flight, the account
 * may make calls again, or no caller can be waiting any more. Fails open: what Redis or Postgres
 * did not let find goes on to its deadline.
 */
export async function cancelAccountCalls(deps: CancelAccountDeps, accountId: string): Promise<void> {
  if (await hasCalls(deps, accountId)) void cancelRest(deps, accountId)
}

async function cancelRest(deps: CancelAccountDeps, accountId: string): Promise<void> {
  const end = performance.now() + deps.config.callTimeoutMs
  while (performance.now() < end && deps.redis.status !== 'end') {
    await delay(PAUSE_MS, undefined, { ref: false })
    if (!(await hasCalls(deps, accountId))) return
  }
}

/**
 * Cancels what is in flight now.
 * @returns whether anything was, or may be
 */
async function hasCalls(deps: CancelAccountDeps, accountId: string): Promise<boolean> {
  try {
    const account = await findUser(deps.db, accountId)
    // An account that was deleted makes no calls of any kind.
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
  // A node waits for its reply: the worker that has the call, or gets it, sends one.
  else await announceCancel(deps.redis, '*', id)
}
