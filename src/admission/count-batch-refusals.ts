import { knownSlug } from '../catalog/catalog.ts'
import type { GatewayError } from '../errors.ts'
import type { CallLog } from '../telemetry/call-log.ts'
import { countCall } from '../telemetry/count-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Principal } from './authenticate.ts'
import { countRefusal, type RefusalDeps } from './count-refusal.ts'

export interface BatchRefusalDeps extends RefusalDeps {
  catalog: ReadonlyMap<string, unknown>
  telemetry: Pick<Telemetry, 'metrics' | 'minutes'>
  callLog: Pick<CallLog, 'refused'>
}

/** Calls of one batch that were refused before they were queued; `api` as its caller wrote it. */
export interface RefusedBatchCalls {
  requestId: string
  refusals: { api: string; error: GatewayError }[]
}

/**
 * Shows refused calls of a batch as those that come alone: in the usage of their account, and to operators. One log line is
 * for all of them, because a caller may have fifty refused by one request at no cost.
 */
export function countBatchRefusals(
  deps: BatchRefusalDeps,
  principal: Principal,
  { requestId, refusals }: RefusedBatchCalls,
): void {
  if (refusals.length === 0) return
  const { accountId, mode } = principal
  const codes: Record<string, number> = {}
  for (const { api, error } of refusals) {
    const { code, status } = error
    const slug = knownSlug(deps.catalog, api)
    countRefusal(deps, principal, { slug, status })
    countCall(deps.telemetry, { slug, mode, status, code, accountId })
    codes[code] = (codes[code] ?? 0) + 1
  }
  const line = { requestId, account: accountId, mode, calls: refusals.length, codes }
  deps.callLog.refused(line, { account: accountId, codes, message: 'calls of a batch refused' })
}
