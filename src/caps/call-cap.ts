import type { Api } from '../catalog/catalog.ts'
import type { Caps } from '../catalog/upstream.ts'
import type { CallJob } from '../queue/call-job.ts'
import { type CapScope, SHARED_SCOPE } from './cap-keys.ts'

/** The cap a call counts against: that of the caller's own key, or the one all others share. */
export function capOf(api: Api, { providerKey }: Pick<CallJob, 'providerKey'>): { scope: CapScope; caps: Caps } {
  return providerKey ? { scope: providerKey.scope, caps: api.keyed.caps } : { scope: SHARED_SCOPE, caps: api.caps }
}
