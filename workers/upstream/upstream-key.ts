import { type CapBucket, SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { type Api, isOpen, withCallerKey } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { ProviderKeys } from './provider-keys.ts'

export interface UpstreamKey {
  api: Api
  key: string | undefined
  bucket: CapBucket
}

/**
 * The caller's own key that the job names, else the operator's.
 * @throws GatewayError API_NOT_ENABLED for a call queued before the API was switched off, or ahead of this worker's
 * knowledge of a new key; or as `ProviderKeys.of`
 */
export async function resolveUpstreamKey(
  { providerKeys }: { providerKeys: ProviderKeys },
  api: Api,
  { providerKey, accountId }: Pick<CallJob, 'providerKey' | 'accountId'>,
): Promise<UpstreamKey> {
  if (!isOpen(api) || (!providerKey && !api.enabled)) throw new GatewayError('API_NOT_ENABLED')
  if (!providerKey) return { api, key: api.key, bucket: SHARED_BUCKET }
  return { api: withCallerKey(api), key: await providerKeys.of(providerKey.id, accountId), bucket: providerKey.bucket }
}
