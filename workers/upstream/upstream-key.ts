import { type CapScope, SHARED_SCOPE } from '../../src/caps/cap-keys.ts'
import { type Api, isOpen, withCallerKey } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { ProviderKeys } from './provider-keys.ts'

/** With which key a call goes to its upstream, where, and on whose cap. */
export interface UpstreamKey {
  api: Api
  key: string | undefined
  scope: CapScope
}

/**
 * The key a call is made with: the caller's own that its job names, else the operator's if there is one. A call that was
 * queued before the API was switched off, or that is ahead of this worker's knowledge of a new key, is not made.
 *
 * @throws GatewayError API_NOT_ENABLED, or as `ProviderKeys.of`
 */
export async function resolveUpstreamKey(
  { providerKeys }: { providerKeys: ProviderKeys },
  api: Api,
  { providerKey, accountId }: Pick<CallJob, 'providerKey' | 'accountId'>,
): Promise<UpstreamKey> {
  if (!isOpen(api) || (!providerKey && !api.enabled)) throw new GatewayError('API_NOT_ENABLED')
  if (!providerKey) return { api, key: api.key, scope: SHARED_SCOPE }
  return { api: withCallerKey(api), key: await providerKeys.of(providerKey.id, accountId), scope: providerKey.scope }
}
