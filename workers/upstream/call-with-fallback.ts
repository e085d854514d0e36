import type { Api } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { ERRORS } from '../../src/errors.ts'
import { SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { callUpstream, type UpstreamCall } from './call-upstream.ts'
import { type Failure, isFailure, isUnsent, type Outcome } from './outcome.ts'
import { RetryBudget } from './retry.ts'
import type { UpstreamDeps } from './upstream-deps.ts'

/** With less time left a fallback source is not tried, milliseconds. */
const FALLBACK_MS_MIN = 500

/**
 * Nothing is repeated at the first source, because the request to the fallback source is the
 * repeat.
 */
class NoRetries extends RetryBudget {
  override take(): boolean {
    return false
  }
}

const NO_RETRIES = new NoRetries()

/**
 * Sends a call to the source of its API. When that source fails or its breaker is open, the call
 * goes to the fallback source, if the API has one, within what is left of the call's time. An
 * attempt at the first source takes at most half of the time, and is not repeated; the wait for its
 * permit is not shortened.
 */
export async function callWithFallback(deps: UpstreamDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  const { api, call, remainingMs } = upstreamCall
  const fallback = api.fallback?.endpoints.get(call.endpoint)
  // A raw answer has the form of the first source, and undeclared parameters are meant for it.
  if (!api.fallback || !fallback || call.raw || call.extra.length > 0) return callUpstream(deps, upstreamCall)
  const attemptTimeoutMsMax = Math.min(deps.attemptTimeoutMsMax, Math.ceil(remainingMs() / 2))
  const first = await callUpstream({ ...deps, attemptTimeoutMsMax, budgetOf: () => NO_RETRIES }, upstreamCall)
  if (!isFailure(first) || !hasSourceFailed(first) || remainingMs() < FALLBACK_MS_MIN) return first
  const second = await callUpstream(deps, atFallback(upstreamCall, api.fallback, fallback.declaration))
  if (!isFailure(second)) return { ...second, isFromFallback: true }
  if (!hasSourceFailed(second) && ERRORS[second.code].status < 500) return second
  // The failure of a source that was sent a request says more than the failure of a source that was
  // not.
  return isUnsent(first) && !isUnsent(second) ? second : first
}

function hasSourceFailed({ code }: Failure): boolean {
  return ERRORS[code].status === 502
}

/**
 * The call as it goes to the fallback source: under its cap, without a place in its wait queue so
 * far.
 */
function atFallback(upstreamCall: UpstreamCall, fallback: Api, endpoint: Endpoint): UpstreamCall {
  const { call } = upstreamCall
  const entry = waitQueueEntry(call, { slug: fallback.slug, bucket: SHARED_BUCKET })
  return {
    ...upstreamCall,
    api: fallback,
    endpoint,
    currentKey: () => fallback.key,
    bucket: SHARED_BUCKET,
    permitRequest: { entry, deadline: call.deadline },
  }
}
