import { knownSlug } from '../catalog/catalog.ts'
import type { ErrorCode } from '../errors.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import type { Telemetry } from './telemetry.ts'
import type { CallSpan } from './tracing.ts'

export interface ObservedCallDeps {
  telemetry: Telemetry
  callLog: Log
  catalog: ReadonlyMap<string, unknown>
}

/** How a call ended. */
interface Ended {
  status: number
  code: string
  ms: number
  accountId: string | undefined
}

/** Follows one call through an API node: one trace, one log line, one count, whatever comes of it. */
export class ObservedCall {
  readonly #deps: ObservedCallDeps
  readonly #requestId: string
  readonly #startedAt = performance.now()
  readonly #span: CallSpan
  #slug: string
  #job: CallJob | undefined
  #head: ReplyHead | undefined

  /** `url` as it came; nothing of its query is kept. */
  constructor(deps: ObservedCallDeps, requestId: string, url: string) {
    const slug = /^\/v1\/call\/([a-z0-9-]+)(?:[/?]|$)/.exec(url)?.[1] ?? ''
    this.#deps = deps
    this.#requestId = requestId
    this.#slug = knownSlug(deps.catalog, slug)
    // A root of its own: a caller's traceparent is not ours to believe.
    this.#span = deps.telemetry.tracing.start('call', {
      kind: 'server',
      attributes: { 'http.route': '/v1/call/{apiSlug}/{endpoint}', 'agw.api': this.#slug, 'agw.request_id': requestId },
    })
  }

  /** The API of the catalog that the address names, or `-`. */
  get slug(): string {
    return this.#slug
  }

  /** W3C trace context for the call's job; undefined where nothing is traced. */
  get traceparent(): string | undefined {
    return this.#span.traceparent
  }

  admitted(job: CallJob): void {
    this.#job = job
    this.#slug = job.slug
    this.#span.set({ 'agw.call_id': job.id, 'agw.account_id': job.accountId, 'agw.endpoint': job.endpoint })
  }

  replied(head: ReplyHead): void {
    this.#head = head
  }

  /** The call is answered; `failure` says why it was refused, and whose it was where no job says so. */
  ended(status: number, failure: { code?: ErrorCode; cause?: unknown; accountId?: string | undefined } = {}): void {
    const { telemetry, callLog } = this.#deps
    const { code, cause, accountId } = failure
    const ms = performance.now() - this.#startedAt
    const job = this.#job
    const { times, cacheStatus } = this.#head ?? {}
    this.#span.set({ 'http.response.status_code': status })
    this.#span.end(code)
    this.#count(telemetry, { status, code: code ?? 'OK', ms, accountId: job?.accountId ?? accountId })
    callLog.info(
      {
        requestId: this.#requestId,
        callId: job?.id,
        account: job?.accountId ?? accountId,
        slug: this.#slug,
        endpoint: job?.endpoint,
        mode: job?.mode,
        status,
        code,
        // Why it failed, in the same line: of the upstream, or of what admission needed.
        reason: this.#head?.cause ?? (status > 500 && cause instanceof Error ? cause.message : undefined),
        ms: round(ms),
        ...(times && {
          queueMs: round(times.queueMs),
          permitMs: round(times.permitMs),
          upstreamMs: round(times.upstreamMs),
          attempts: times.attempts,
        }),
        cache: cacheStatus,
      },
      'call',
    )
  }

  #count({ metrics, minutes }: Telemetry, { status, code, ms, accountId }: Ended): void {
    const slug = this.#slug
    const { times, cacheStatus } = this.#head ?? {}
    metrics.calls.inc({ slug, status, code })
    metrics.callSeconds.observe({ slug }, ms / 1_000)
    // What test keys do says nothing of the service's load at its upstreams.
    const isTest = this.#job?.mode === 'test'
    const spent = { queueMs: times?.queueMs, upstreamMs: upstreamMsOf(times) }
    if (!isTest) minutes.add({ slug, code, accountId, status, ...spent })
    if (!times) return
    metrics.queueSeconds.observe({ slug }, times.queueMs / 1_000)
    metrics.permitSeconds.observe({ slug }, times.permitMs / 1_000)
    const upstreamMs = upstreamMsOf(times)
    if (upstreamMs !== undefined) metrics.upstreamSeconds.observe({ slug }, upstreamMs / 1_000)
    if (cacheStatus !== undefined) metrics.cache.inc({ slug, result: cacheResult(cacheStatus) })
  }
}

/** Undefined for a call that no attempt was made for: a cached answer is not a fast upstream. */
function upstreamMsOf(times: ReplyHead['times'] | undefined): number | undefined {
  return times && times.attempts > 0 ? times.upstreamMs : undefined
}

function cacheResult(cacheStatus: string): 'hit' | 'stale' | 'miss' {
  if (/; fwd=stale|detail=revalidating/.test(cacheStatus)) return 'stale'
  return /^agw; hit/.test(cacheStatus) ? 'hit' : 'miss'
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
