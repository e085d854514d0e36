import { bucketOf, type CapBucket, SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { type Api, isOpen, PAUSED_RETRY_MS, withCallerKey } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { ProviderKeys } from './provider-keys.ts'

export interface UpstreamKey {
  api: Api
  /** Read when a request is sent: operators replace keys while calls wait. */
  currentKey: () => string | undefined
  bucket: CapBucket
}

/**
 * @throws GatewayError for a call queued before the API was paused or switched off, or ahead of
 *   this worker's knowledge of a new key
 */
export function checkOpen(api: Api, { providerKey }: Pick<CallJob, 'providerKey'>): void {
  if (!isOpen(api) || (!providerKey && !api.enabled)) throw new GatewayError('API_NOT_ENABLED')
  if (api.pausedMode === 'refuse') throw new GatewayError('API_PAUSED', { retryAfterMs: PAUSED_RETRY_MS })
}

export function operatorKey(api: Api): UpstreamKey {
  return { api, currentKey: () => api.key, bucket: SHARED_BUCKET }
}

/** The key of the account's own that the job names. @throws GatewayError as `ProviderKeys.of` */
export async function callerKey(
  { providerKeys }: { providerKeys: ProviderKeys },
  api: Api,
  { providerKey, accountId }: { providerKey: NonNullable<CallJob['providerKey']>; accountId: string },
): Promise<UpstreamKey> {
  const key = await providerKeys.of(providerKey.id, accountId)
  return { api: withCallerKey(api), currentKey: () => key, bucket: bucketOf({ providerKey }) }
}
