import type { UpstreamLimit } from '../../src/caps/cap.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { noteSourceLimit } from '../../src/health/record.ts'
import { SHARED_BUCKET, UNPROVEN_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { scheduleProbe } from './breaker-gate.ts'
import { limitCaller, noteLimitReport, plainCaller, trustLimitReports } from './limited-callers.ts'
import { LIMIT_MS_DEFAULT, RETRY_AFTER_MS_MAX, rateLeft } from './rate-headers.ts'
import type { ClassifiedExchange, Sending } from './send-under-permit.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import type { WireRequest } from './upstream-request.ts'

interface ObservedAnswer {
  request: WireRequest
  result: ClassifiedExchange
  /** Id of the permit under which the request was sent. */
  observedBy: string
}

/** Makes the cap follow what an answer says of the upstream's own limiter. Never throws. */
export async function followReportedLimit(
  deps: UpstreamDeps,
  sending: Sending,
  observed: ObservedAnswer,
): Promise<void> {
  const limit = await limitIn(deps, sending, observed)
  if (limit) await applyUpstreamLimit(deps, sending, { ...limit, observedBy: observed.observedBy })
}

/**
 * What an answer to a caller's request is believed of the shared cap: a caller's own values may be
 * why. Milliseconds.
 */
const UNCONFIRMED_MS = 60_000

/** How long before the cap opens the probe is there that goes first, milliseconds. */
const PROBE_AHEAD_MS = 2_000

/** What an answer says of the upstream's own limiter, as far as it is believed. */
async function limitIn(
  deps: UpstreamDeps,
  { api, permitRequest: { bucket, accountId }, currentKey, recorder }: Sending,
  { request, result }: ObservedAnswer,
): Promise<Omit<UpstreamLimit, 'observedBy'> | undefined> {
  // Operators replaced the key meanwhile: its limiter says nothing of the limiter of the new key.
  // The limiter of an unproven key says nothing of other keys.
  if (request.key !== currentKey() || bucket === UNPROVEN_BUCKET) return undefined
  const reported = reportedLimit(api, result)
  // A caller's own key has a cap of its own, and a probe's request is ours.
  const { source, isPlain, voter = '' } = recorder.request
  if (!reported || bucket !== SHARED_BUCKET) return reported
  if (source === 'probe') {
    if (reported.closedForMs) await trustLimitReports(deps, api.slug)
    return reported
  }
  if (!isPlain) return undefined
  const { remaining } = reported
  let { closedForMs = 0 } = reported
  if (closedForMs > 0 && !(await noteLimitReport(deps, api.slug, voter))) {
    await limitCaller(deps, plainCaller(api.slug, accountId), closedForMs)
    closedForMs = 0
  }
  const waitMs = Math.max(closedForMs, remaining?.requests === 0 ? remaining.resetMs : 0)
  if (waitMs > UNCONFIRMED_MS) {
    confirmLimit(deps, api.slug)
    return { closedForMs: UNCONFIRMED_MS }
  }
  return { closedForMs, remaining: remaining && { ...remaining, resetMs: Math.min(remaining.resetMs, UNCONFIRMED_MS) } }
}

function reportedLimit(
  { upstream }: Api,
  { answer, responseClass }: ClassifiedExchange,
): Omit<UpstreamLimit, 'observedBy'> | undefined {
  const isLimiting = responseClass?.code === 'UPSTREAM_RATE_LIMITED'
  const left = rateLeft(upstream, answer.headers)
  if (!isLimiting && !left) return undefined
  return {
    closedForMs: isLimiting ? Math.min(responseClass.retryAfterMs ?? LIMIT_MS_DEFAULT, RETRY_AFTER_MS_MAX) : undefined,
    remaining: left && { requests: left.remaining, resetMs: left.resetMs },
  }
}

/**
 * Has a probe go first when the cap opens again: what the upstream says to it holds for as long as
 * it says.
 */
function confirmLimit(deps: UpstreamDeps, slug: string): void {
  const delayMs = UNCONFIRMED_MS - PROBE_AHEAD_MS
  const name = `closed-${Math.floor(deps.clock.now())}`
  scheduleProbe(deps, slug, { name, isForced: true, delayMs, once: ['closed', delayMs] })
}

async function applyUpstreamLimit(
  { redis, clock, caps, log }: UpstreamDeps,
  { api, permitRequest: { bucket } }: Sending,
  limit: UpstreamLimit,
): Promise<void> {
  const { closedForMs = 0, remaining } = limit
  const limitedMs = Math.max(closedForMs, remaining?.requests === 0 ? remaining.resetMs : 0)
  if (limitedMs > 0 && bucket === SHARED_BUCKET) {
    // Pages and the catalog say it. Nobody waits for that.
    noteSourceLimit(redis, api.slug, clock.now() + limitedMs).catch((error) =>
      log.warn({ err: error, slug: api.slug }, 'failed to note that a source limits the gateway'),
    )
  }
  await caps
    .of(api, bucket)
    .applyUpstreamLimit(limit)
    .catch((error) => log.warn({ err: error, slug: api.slug }, 'failed to apply the limit that an upstream reported'))
}
