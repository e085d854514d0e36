import { forgetResults } from '../queue/results.ts'
import { type CancelAccountDeps, cancelAccountCalls } from './cancel-account-calls.ts'

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
