import type { FastifyRequest } from 'fastify'
import type { CallLimits } from '../config.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { originOf } from '../http/request/caller-socket.ts'
import { type BatchGrant, StaleRightsError } from '../limits/account-limits.ts'
import { callsOf, PLAN_OF_TIER } from '../limits/plans.ts'
import { requireAudience } from '../oauth/resources.ts'
import { type CallJob, createId } from '../queue/call-job.ts'
import { acquireBatchLimits, LEASE_GRACE_MS } from './acquire-limits.ts'
import { type AdmissionDeps, createJob, refusalUnlessStale } from './admit.ts'
import { authenticateCall, isUpToDate, type Principal } from './authenticate.ts'
import { type Preference, readBatchPreference } from './call-request.ts'
import { type CheckedTarget, checkBatchCall, findApi, findEndpoint, requireServed } from './check-call.ts'
import { type BatchRefusalDeps, endRefusedBatchCalls } from './end-refused-calls.ts'

export interface BatchItem {
  api: string
  endpoint: string
  parameters?: Record<string, unknown>
}

/** Identical items of a batch share one call. */
export interface BatchUnit {
  job: CallJob
  checked: CheckedTarget
  indexes: number[]
}

export interface AdmittedBatch {
  principal: Principal
  /** Refused items by index. They cost nothing. */
  refused: Map<number, GatewayError>
  units: BatchUnit[]
  /** Undefined if no item leads to a call. */
  grant: BatchGrant | undefined
  preference: Preference
  timeoutMs: number
  leaseMs: number
}

export interface BatchOptions {
  items: BatchItem[]
  /** Whether all calls must fit into the limits, or as many as fit are made. */
  take: 'all' | 'fit'
}

/**
 * How long a batch may run so that its calls can still give units back: their entries of the last
 * minute must exist. Milliseconds.
 */
const BATCH_MS_MAX = 55_000

/**
 * As `admitCall`, for many calls. The limits of all calls are taken in one atomic step. A refused
 * batch costs nothing.
 *
 * @throws GatewayError
 */
export async function admitBatch(
  deps: AdmissionDeps & BatchRefusalDeps,
  request: FastifyRequest,
  options: BatchOptions,
): Promise<AdmittedBatch> {
  for (let tries = 1; ; tries += 1) {
    const principal = await authenticateCall(deps, request)
    try {
      return await tryAdmit(deps, request, { ...options, principal })
    } catch (thrown) {
      const refusal = await refusalUnlessStale(deps, request, { error: thrown, principal, tries })
      if (refusal === undefined) continue
      const error = toGatewayError(refusal)
      const refusals = options.items.map(({ api, endpoint }) => ({ api, endpoint, error }))
      void endRefusedBatchCalls(deps, principal, { origin: originOf(request, 'batch'), refusals })
      throw refusal
    }
  }
}

async function tryAdmit(
  deps: AdmissionDeps,
  request: FastifyRequest,
  { items, take, principal }: BatchOptions & { principal: Principal },
): Promise<AdmittedBatch> {
  const { config } = deps
  if (principal.connection) requireAudience(principal.connection, request, config.http.baseUrl)
  const { targets, refused } = checkItems(deps, request, { items, principal })
  if (refused.size > 0 && !(await isUpToDate(deps, principal))) throw new StaleRightsError()
  const plan = config.plans[PLAN_OF_TIER[principal.tier]]
  if (take === 'all') checkFits(targets.length, principal, plan)
  const timeoutMsMax = Math.min(config.callTimeoutMs, BATCH_MS_MAX)
  const preference = readBatchPreference(request.headers, timeoutMsMax)
  const timeoutMs = preference.waitMs ?? timeoutMsMax
  const decided = { principal, refused, preference, timeoutMs, leaseMs: timeoutMs + LEASE_GRACE_MS }
  if (targets.length === 0) return { ...decided, units: [], grant: undefined }
  const callIds = targets.map(() => createId('call'))
  const grant = await acquireBatchLimits(deps, principal, { callIds, take, timeoutMs })
  const { now } = grant.state
  const units = targets.map(({ checked, indexes }, place) => ({
    job: createJob(deps, { principal, checked, id: callIds[place] ?? '', now, timeoutMs }),
    checked,
    indexes,
  }))
  return { ...decided, units, grant }
}

/**
 * Refuses a batch of which all calls can never fit, because a retry would never succeed.
 *
 * @throws GatewayError VALIDATION_ERROR
 */
function checkFits(count: number, { mode, allowance, connection }: Principal, plan: CallLimits): void {
  const perMinute = { period: 'minute', ofPlan: plan.perMinute, own: allowance?.perMinute }
  const perMonth = { period: 'month', ofPlan: plan.perMonth, own: allowance?.perMonth }
  // Test calls have no monthly quota.
  for (const { period, ofPlan, own } of mode === 'test' ? [perMinute] : [perMinute, perMonth]) {
    const max = Math.min(ofPlan, own ?? Number.POSITIVE_INFINITY)
    if (count <= max) continue
    const owner = max === ofPlan ? 'plan' : connection ? 'account' : 'key'
    const application = owner === 'account' ? 'this application ' : ''
    throw new GatewayError('VALIDATION_ERROR', {
      message: `The ${owner} allows ${application}${callsOf(max)} a ${period}; the batch has ${count}.`,
      tokens: { param: 'calls', limit: max },
    })
  }
}

function checkItems(
  { catalog, lanes }: AdmissionDeps,
  request: FastifyRequest,
  { items, principal }: { items: BatchItem[]; principal: Principal },
) {
  const refused = new Map<number, GatewayError>()
  const targets = new Map<string, { checked: CheckedTarget; indexes: number[] }>()
  for (const [index, { api, endpoint, parameters = {} }] of items.entries()) {
    try {
      const target = findEndpoint(findApi(catalog, api), endpoint.replace(/^\/+/, ''))
      const checked = checkBatchCall(target, parameters, { request, principal })
      requireServed({ lanes }, target.api)
      const sorted = Object.entries(checked.parameters).sort(([left], [right]) => (left < right ? -1 : 1))
      // Two identical writes are two calls.
      const isShared = (target.endpoint.declaration.effect ?? 'read') === 'read'
      const identity = JSON.stringify([api, target.endpoint.path, sorted, checked.extra, isShared ? '' : index])
      const known = targets.get(identity)
      if (known) known.indexes.push(index)
      else targets.set(identity, { checked, indexes: [index] })
    } catch (thrown) {
      refused.set(index, toGatewayError(thrown))
    }
  }
  return { targets: [...targets.values()], refused }
}
