import type { Job } from 'bullmq'
import type { Api } from '../../src/catalog/catalog.ts'
import { sourceNamed } from '../../src/catalog/fallback.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { probeEverySeconds } from '../../src/catalog/probe-interval.ts'
import { RECHECK_MS } from '../../src/health/health-thresholds.ts'
import { type ProbeOutcome, parseProbeJob, writeProbeOutcome } from '../../src/queue/probe-job.ts'
import { NO_TIMES } from '../../src/queue/reply-head.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError } from '../errors/attempt-error.ts'
import { type PermitRequest, permitRequestOf } from '../permits/local-waiters.ts'
import { mapAnswers } from '../upstream/interpret.ts'
import { forgetLimitedCallers } from '../upstream/limited-callers.ts'
import { AttemptRecorder, type FailureWords } from '../upstream/record-attempt.ts'
import { completedParameters } from '../upstream/recorded-call.ts'
import { sendUnderPermit } from '../upstream/send-under-permit.ts'
import { buildWireRequest } from '../upstream/upstream-request.ts'
import type { WorkerDeps } from './worker-deps.ts'

const FRESH_PART = 0.9

/** Longest duration of a probe with its wait for a permit, milliseconds. */
const PROBE_MS_MAX = 30_000

/**
 * Sends the upstream's cheapest request, on its cap, or makes a recorded call, whose answer is read
 * like the answer to a caller. Skipped if real traffic shows the health.
 */
export async function processProbe(deps: WorkerDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const { slug, isForced, skipsPause, isDecisive, endpoint: membersOf, outcomeId } = parseProbeJob(job.data)
  const api = sourceNamed(deps.catalog, slug)
  if (!api?.enabled || (api.pausedMode === 'refuse' && !isForced)) return null
  if (!isForced && isFresh(deps, api)) return null
  await deps.health.read(slug)
  const recorded = recordedCall(api, membersOf ?? unreadableEndpoint(deps, slug))
  // Another request cannot decide about the members of this endpoint.
  if (membersOf !== undefined && !recorded) return null
  const recorder = new AttemptRecorder(deps, {
    slug,
    source: 'probe',
    endpoint: recorded?.path,
    isPlain: true,
    concurrency: api.caps.concurrency,
    skipsPause,
    isDecisive,
  })
  const timeout = AbortSignal.timeout(PROBE_MS_MAX)
  const endsAt = performance.now() + PROBE_MS_MAX
  const sending = {
    api,
    endpoint: recorded?.endpoint,
    currentKey: () => api.key,
    permitRequest: requestOfProbe(deps, slug, String(job.id)),
    times: { ...NO_TIMES },
    progress: { reach: 'unsent' as const },
    remainingMs: () => endsAt - performance.now(),
    signal: AbortSignal.any([cancelled, timeout]),
    recorder,
  }
  let status: number | null = null
  let failure: FailureWords | undefined
  try {
    const request = recorded?.request ?? api.upstream.probe.request
    const { answer, responseClass } = await sendUnderPermit(deps, sending, () =>
      buildWireRequest(api, request, { extra: [], key: api.key, contact: deps.contact }),
    )
    status = answer.status
    if (!responseClass) await forgetLimitedCallers(deps, slug)
    if (recorded && !responseClass) {
      const read = mapAnswers(recorded.endpoint, [answer], recorded)
      if ('data' in read) recorder.noteMembers({ ...recorded, upstream: api.upstream, data: read.data })
      else recorder.flush(read.responseClass.code)
    }
  } catch (error) {
    // The outcome is recorded in the health. A failed probe is not a failed job.
    if (!(error instanceof AttemptError) && !timeout.aborted) throw error
    failure = failureWithoutAnswer(deps, slug, error)
  } finally {
    recorder.flush()
  }
  failure = recorder.lastFailure ?? failure
  const ms = Math.round(sending.times.upstreamMs)
  await report(
    deps,
    { slug, outcomeId },
    { status, ms, code: failure?.code ?? null, words: failure?.words ?? `HTTP ${status} in ${ms} ms` },
  )
  return null
}

function failureWithoutAnswer({ catalog }: WorkerDeps, slug: string, error: unknown): FailureWords {
  if (error instanceof AttemptError && error.code !== 'UPSTREAM_CAP_EXHAUSTED')
    return { code: error.code, words: error.message, isNetwork: false }
  return sourceNamed(catalog, slug)?.pausedMode === 'hold'
    ? { code: 'API_PAUSED', words: 'the API is paused and holds its probes', isNetwork: false }
    : { code: 'NO_PERMIT', words: 'no slot of the cap in time', isNetwork: false }
}

/**
 * A probe goes before all calls, because it has the lowest tag. It does not count as demand of an
 * account.
 */
function requestOfProbe({ clock }: WorkerDeps, slug: string, callId: string): PermitRequest {
  const entry = { id: callId, accountId: 'probe', isAsync: false, weight: 1, slug, bucket: SHARED_BUCKET }
  return permitRequestOf(entry, clock.now() + PROBE_MS_MAX, 0)
}

/**
 * The endpoint to try while the answers of an upstream in trouble cannot be read. The answer to the
 * cheapest request has another form, so that its status alone counts. While the breaker is open, a
 * half-open attempt finds out whether the upstream answers at all.
 */
function unreadableEndpoint({ health }: WorkerDeps, slug: string): string | undefined {
  const { status, isOpen, lastFailure } = health.ofUpstream(slug)
  if (status === 'Healthy' || isOpen || lastFailure?.code !== 'UPSTREAM_INVALID_RESPONSE') return undefined
  return lastFailure.endpoint
}

/** The call whose answer was recorded, if it needs a single request. */
function recordedCall(api: Api, path: string | undefined) {
  const found = path === undefined ? undefined : api.endpoints.get(path)
  if (!found) return undefined
  const { declaration: endpoint } = found
  // The example of a document may be made up, and a probe must never write.
  if (api.upstream.own || (endpoint.effect ?? 'read') !== 'read') return undefined
  const context = { now: Date.now() }
  try {
    const parameters = completedParameters(endpoint, context)
    const [request, ...others] = [endpoint.request(parameters, context)].flat()
    return others.length > 0 ? undefined : { path: found.path, endpoint, parameters, context, request }
  } catch (error) {
    // For example a date that is in the past by now.
    if (error instanceof InvalidParameter) return undefined
    throw error
  }
}

async function report(
  { redis, log }: WorkerDeps,
  { slug, outcomeId }: { slug: string; outcomeId: string | undefined },
  outcome: ProbeOutcome,
): Promise<void> {
  // Not a warning, because without a network there would be a warning for each upstream.
  log.info({ slug, ...outcome }, outcome.code === null ? 'probe answered' : 'probe failed')
  if (outcomeId === undefined) return
  await writeProbeOutcome(redis, { slug, id: outcomeId }, outcome).catch((error) =>
    log.warn({ err: error, slug }, 'failed to report a probe'),
  )
}

function isFresh({ clock, health }: WorkerDeps, api: Api): boolean {
  const { status, lastCallAt, lastProbeAt } = health.ofUpstream(api.slug)
  if (status === 'Down') return false
  const healthyMs = probeEverySeconds(api) * 1_000
  const everyMs = status === 'Degraded' ? Math.min(RECHECK_MS, healthyMs) : healthyMs
  return clock.now() - Math.max(lastCallAt, lastProbeAt) < everyMs * FRESH_PART
}
