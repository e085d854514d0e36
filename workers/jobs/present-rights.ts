import { setImmediate as turn } from 'node:timers/promises'
import { missingForLiveCalls } from '../../src/accounts/trust.ts'
import { checkTarget } from '../../src/admission/rights.ts'
import type { ApiEndpoint } from '../../src/catalog/api-endpoint.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { findCredentialRights } from '../../src/db/credential-rights.ts'
import { GatewayError } from '../../src/errors.ts'
import { isCurrentVersion } from '../../src/limits/account-version.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { WorkerDeps } from './worker-deps.ts'

/**
 * A call that is this young and did not wait has the rights that admission read, milliseconds. Most
 * calls are, and cost no command of Redis.
 */
const YOUNG_MS = 250

type RightsDeps = Pick<WorkerDeps, 'redis' | 'db' | 'clock' | 'running' | 'providerKeys' | 'signup'>

interface QueuedCall {
  api: Api
  endpoint: ApiEndpoint
  call: CallJob
}

/**
 * Repeats the checks of admission for a call during whose wait its account changed. Call it before
 * each request. The call is cancelled if its key, connection or log-in has ended or may no longer
 * call the endpoint. If the rights changed and cannot be read, the call fails.
 *
 * @throws GatewayError as `ProviderKeys.readAgain` if the provider key may no longer be used
 */
export async function checkRightsAgain(
  deps: RightsDeps,
  queued: QueuedCall,
  { hasWaited }: { hasWaited: boolean },
): Promise<void> {
  const { accountId, version, providerKey, limitsAcquiredAt } = queued.call
  // From a node of an earlier version. @until 0.4.0
  if (version === undefined) return
  if (!hasWaited && deps.clock.now() - limitsAcquiredAt < YOUNG_MS) return
  if (await isCurrentVersion(deps.redis, accountId, version)) return
  if (providerKey) await deps.providerKeys.readAgain(providerKey.id, accountId)
  if (await mayStillCall(deps, queued)) return
  deps.running.cancel(queued.call.id)
  // A request goes on while any call that shares it waits. Writes are never shared: each is checked
  // before it is sent, and must not be called cancelled after that.
  if (queued.endpoint.declaration.effect !== 'once') deps.running.cancelWaiting(callerOf(queued.call))
  // The request that the calls shared learns only after this turn that they have left it.
  await turn()
}

/** Who calls what, so far as rights are concerned; undefined if the job does not say it. */
export function callerOf({ keyId, sessionId, slug, endpoint }: CallJob): string | undefined {
  const credentialId = keyId ?? sessionId
  return credentialId && `${credentialId} ${slug}${endpoint}`
}

async function mayStillCall({ db, signup }: RightsDeps, { api, endpoint, call }: QueuedCall): Promise<boolean> {
  const credentialId = call.keyId ?? call.sessionId
  if (credentialId === undefined) return true
  const rights = await findCredentialRights(db, credentialId)
  if (!rights) return false
  try {
    const missing = missingForLiveCalls(rights, signup)
    checkTarget({ api, endpoint }, { ...rights, mode: call.mode, missingForLiveCalls: missing })
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}
