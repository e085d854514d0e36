import { type Catalog, knownTarget } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import type { ErrorCode, GatewayError } from '../errors.ts'
import type { CallEndBatcher } from '../limits/call-end-batcher.ts'
import type { EndStep } from '../limits/end-calls.ts'
import { countedCredential } from '../limits/limit-state.ts'
import { PLAN_OF_TIER } from '../limits/plans.ts'
import type { CallOrigin } from '../queue/call-job.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { CallLines } from '../telemetry/call-lines.ts'
import type { CallLogWriter } from '../telemetry/call-log-writer.ts'
import { countCall, type EndedCall } from '../telemetry/ended-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Principal } from './authenticate.ts'

export interface RefusalDeps {
  callEnds: Pick<CallEndBatcher, 'end'>
  /** Decides for which day usage counts. */
  clock: Pick<RedisClock, 'now'>
}

/**
 * A refused call. `taken`: the units that it took, and when, in the time of Redis; absent if it
 * took none.
 */
export interface RefusedCall {
  slug: string
  code: ErrorCode
  taken?: { id: string; limitsAcquiredAt: number } | undefined
}

/**
 * Shows a refused call in the account's usage, and gives back all that it took. Without limits it
 * costs no round trip.
 */
export function endRefusedCall(
  { callEnds, clock }: RefusalDeps,
  principal: Pick<Principal, 'accountId' | 'keyId' | 'mode' | 'allowance'>,
  { slug, code, taken }: RefusedCall,
): Promise<EndStep> {
  const { accountId, keyId, mode } = principal
  const credentialId = countedCredential(principal)
  const key = { ...(keyId === undefined ? {} : { keyId }), ...(credentialId === undefined ? {} : { credentialId }) }
  // A call without units counts for the day of its refusal.
  const limitsAcquiredAt = taken?.limitsAcquiredAt ?? clock.now()
  return callEnds.end(
    { accountId, mode, ...key, slug, limitsAcquiredAt, ...(taken && { id: taken.id }) },
    { code, reach: 'refused' },
  )
}

export interface BatchRefusalDeps extends RefusalDeps {
  catalog: Catalog
  config: Pick<Config, 'plans'>
  telemetry: Pick<Telemetry, 'metrics' | 'minutes'>
  callLines: Pick<CallLines, 'write'>
  callLog: Pick<CallLogWriter, 'write'>
}

/**
 * Calls of one batch that were refused before they were queued. `api` and `endpoint` are written as
 * their caller wrote them.
 */
export interface RefusedBatchCalls {
  origin: CallOrigin
  refusals: ({ api: string; endpoint: string; error: GatewayError } & Pick<RefusedCall, 'taken'>)[]
}

/**
 * Ends refused calls of a batch, and shows them to operators. They share one log line, because one
 * request may have fifty refused calls at no cost. Resolves when their units have been given back,
 * or will be in the background.
 */
export async function endRefusedBatchCalls(
  deps: BatchRefusalDeps,
  principal: Principal,
  { origin, refusals }: RefusedBatchCalls,
): Promise<void> {
  if (refusals.length === 0) return
  const { accountId, keyId, mode, tier } = principal
  const refusedByPlan = deps.config.plans[PLAN_OF_TIER[tier]]
  const codes: Record<string, number> = {}
  const ends = refusals.map(({ api, endpoint: path, taken, error }) => {
    const { code, status, details } = error
    const { slug, endpoint } = knownTarget(deps.catalog, api, `/${path.replace(/^\/+/, '')}`)
    const ended: EndedCall = {
      ...{ ...origin, quotedMs: details.retryAfterMs, id: taken?.id, accountId, keyId, mode },
      ...{ slug, endpoint, status, code, totalMs: 0, refusedByPlan },
    }
    countCall(deps.telemetry, ended)
    deps.callLog.write(ended)
    codes[code] = (codes[code] ?? 0) + 1
    return endRefusedCall(deps, principal, { slug, code, taken })
  })
  const { requestId } = origin
  const line = { requestId, account: accountId, mode, calls: refusals.length, codes }
  const [code = ''] = Object.keys(codes)
  deps.callLines.write({ account: accountId, code, codes, message: 'calls of a batch refused' }, () => line)
  await Promise.allSettled(ends)
}
