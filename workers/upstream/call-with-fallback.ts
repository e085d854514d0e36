import { fallbackFor } from '../../src/catalog/fallback.ts'
import { ERRORS } from '../../src/errors.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { callUpstream, type UpstreamCall } from './call-upstream.ts'
import { type Failure, isFailure, isUnsent, type Outcome } from './outcome.ts'
import type { UpstreamDeps } from './upstream-deps.ts'

/** With less time left a fallback source is not tried, milliseconds. */
const FALLBACK_MS_MIN = 500

/**
 * Sends a call to the source of its API. When that source fails, limits the gateway, or its breaker
 * is open, the call goes to the fallback source, within what is left of the call's time. An attempt
 * at the first source takes at most half of the time, and is not repeated, because the request to
 * the fallback source is the repeat; the wait for its permit is not shortened.
 */
export async function callWithFallback(deps: UpstreamDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  const { call, remainingMs } = upstreamCall
  const fallback = fallbackFor(upstreamCall.api, call)
  if (!fallback) return callUpstream(deps, upstreamCall)
  const { source, endpoint } = fallback
  const attemptTimeoutMsMax = Math.min(deps.attemptTimeoutMsMax, Math.ceil(remainingMs() / 2))
  const first = await callUpstream(deps, { ...upstreamCall, attemptTimeoutMsMax, isNotRepeated: true })
  if (!isFailure(first) || !hasSourceFailed(first) || remainingMs() < FALLBACK_MS_MIN) return first
  // Under its own cap, without a place in its wait queue so far.
  const access = { api: source, endpoint, currentKey: () => source.key, bucket: SHARED_BUCKET, coalescedKey: undefined }
  const second = await callUpstream(deps, { ...upstreamCall, ...access })
  if (!isFailure(second)) return { ...second, isFromFallback: true }
  if (!hasSourceFailed(second) && ERRORS[second.code].status < 500) return second
  // The failure of a source that was sent a request says more than the failure of a source that was
  // not.
  return isUnsent(first) && !isUnsent(second) ? second : first
}

function hasSourceFailed({ code }: Failure): boolean {
  return ERRORS[code].status === 502
}
