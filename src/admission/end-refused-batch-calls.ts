import { type Catalog, knownEndpoint, knownSlug } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import type { GatewayError } from '../errors.ts'
import { planOf } from '../limits/plans.ts'
import type { CallOrigin } from '../queue/call-job.ts'
import type { CallLines } from '../telemetry/call-lines.ts'
import type { CallLogWriter } from '../telemetry/call-log-writer.ts'
import { countCall } from '../telemetry/count-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Principal } from './authenticate.ts'
import { endRefusedCall, type RefusalDeps, type RefusedCall } from './end-refused-call.ts'

export interface BatchRefusalDeps extends RefusalDeps {
  catalog: Catalog
  config: Pick<Config, 'plans'>
  telemetry: Pick<Telemetry, 'metrics' | 'minutes'>
  callLines: Pick<CallLines, 'refused'>
  callLog: Pick<CallLogWriter, 'write'>
}

/**
 * Calls of one batch that were refused before they were queued; `api` and `endpoint` as their
 * caller wrote them.
 */
export interface RefusedBatchCalls {
  origin: CallOrigin
  refusals: ({ api: string; endpoint: string; error: GatewayError } & Pick<RefusedCall, 'taken'>)[]
}

/**
 * Ends refused calls of a batch, and shows them to operators. One log line is for all of them,
 * because a caller may have fifty refused by one request at no cost. Resolves when what they took
 * is given back, or is to be given back in the background.
 */
export async function endRefusedBatchCalls(
  deps: BatchRefusalDeps,
  principal: Principal,
  { origin, refusals }: RefusedBatchCalls,
): Promise<void> {
  if (refusals.length === 0) return
  const { accountId, keyId, mode, tier } = principal
  const refusedBy = deps.config.plans[planOf(tier)]
  const codes: Record<string, number> = {}
  const ends = refusals.map(({ api, endpoint: path, taken, error }) => {
    const { code, status, details } = error
    const slug = knownSlug(deps.catalog, api)
    countCall(deps.telemetry, { slug, mode, status, code, accountId })
    const endpoint = knownEndpoint(deps.catalog, slug, `/${path.replace(/^\/+/, '')}`)
    const quoted = details.retryAfterMs === undefined ? {} : { quotedMs: details.retryAfterMs }
    const of = { id: taken?.id, origin: { ...origin, ...quoted }, accountId, keyId, mode }
    deps.callLog.write({ ...of, slug, endpoint, status, code, totalMs: 0, refusedBy })
    codes[code] = (codes[code] ?? 0) + 1
    return endRefusedCall(deps, principal, { slug, code, taken })
  })
  const { requestId } = origin
  const line = { requestId, account: accountId, mode, calls: refusals.length, codes }
  deps.callLines.refused(line, { account: accountId, codes, message: 'calls of a batch refused' })
  await Promise.allSettled(ends)
}
