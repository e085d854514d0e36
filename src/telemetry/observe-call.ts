import { type Catalog, knownEndpoint, knownSlug } from '../catalog/catalog.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { Config } from '../config.ts'
import type { ErrorCode, GatewayError } from '../errors.ts'
import { planOf } from '../limits/plans.ts'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import type { Reply, ReplyHead } from '../queue/reply-head.ts'
import type { CallLines } from './call-lines.ts'
import type { CallLogWriter } from './call-log-writer.ts'
import type { Telemetry } from './telemetry.ts'
import type { CallSpan } from './tracing.ts'

export interface ObservedCallDeps {
  telemetry: Telemetry
  callLines: Pick<CallLines, 'admitted' | 'refused'>
  callLog: Pick<CallLogWriter, 'write'>
  catalog: Catalog
  config: Pick<Config, 'plans'>
}

/** Whose a call is that was refused before it had a job. */
interface Caller extends Pick<CallJob, 'accountId' | 'mode'> {
  keyId: string | undefined
  tier: Tier
}

/** Why a call failed, and what is known of it if no job says so. */
interface CallFailure {
  code?: ErrorCode
  cause?: unknown
  caller?: Caller | undefined
  callId?: string | undefined
  retryAfterMs?: number | undefined
}

/**
 * Follows one call through an API node: one trace, one log line, one row, one count, whatever comes
 * of it.
 */
export class ObservedCall {
  readonly #deps: ObservedCallDeps
  readonly #origin: CallOrigin
  readonly #startedAt = performance.now()
  readonly #span: CallSpan
  #slug: string
  #endpoint: string | undefined
  #job: CallJob | undefined
  #bytes: number | undefined
  #head: ReplyHead | undefined
  #isCountedHere = true

  /** `url` as it came; nothing of its query is kept. */
  constructor(deps: ObservedCallDeps, origin: CallOrigin, url: string) {
    const [, slug = '', endpoint = ''] = /^\/v1\/call\/([a-z0-9-]+)(?:(\/[a-z0-9-]+)?(?:\?|$)|\/)/.exec(url) ?? []
    this.#deps = deps
    this.#origin = { ...origin }
    this.#slug = knownSlug(deps.catalog, slug)
    this.#endpoint = knownEndpoint(deps.catalog, slug, endpoint)
    // A root of its own: a caller's traceparent is not ours to believe.
    this.#span = deps.telemetry.tracing.start('call', {
      kind: 'server',
      attributes: {
        'http.route': '/v1/call/{apiSlug}/{endpoint}',
        'agw.api': this.#slug,
        'agw.request_id': origin.requestId,
      },
    })
  }

  /** The API of the catalog that the address names, or `-`. */
  get slug(): string {
    return this.#slug
  }

  /** W3C trace context for the call's job; undefined if nothing is traced. */
  get traceparent(): string | undefined {
    return this.#span.traceparent
  }

  /** `quotedMs`: the forecast wait for a permit. */
  admitted(job: CallJob, quotedMs: number): void {
    this.#job = job
    this.#slug = job.slug
    this.#endpoint = job.endpoint
    this.#origin.quotedMs = quotedMs
    this.admissionEnded()
    this.#span.set({ 'agw.call_id': job.id, 'agw.account_id': job.accountId, 'agw.endpoint': job.endpoint })
  }

  /** Admission has decided. @returns how long it took, milliseconds */
  admissionEnded(): number {
    const ms = performance.now() - this.#startedAt
    this.#origin.admissionMs = ms
    return ms
  }

  replied({ head, body }: Reply): void {
    this.#head = head
    this.#bytes = body.length
  }

  /**
   * An asynchronous call was queued: whatever its caller is answered, its worker counts it when it
   * has ended.
   */
  leftToWorker(): void {
    this.#isCountedHere = false
  }

  /** The call is answered by an error. */
  failed(error: GatewayError, of: Pick<CallFailure, 'caller' | 'callId'>): void {
    const { code, cause, details, status } = error
    this.ended(status, { code, cause, retryAfterMs: details.retryAfterMs, ...of })
  }

  /** The call is answered. */
  ended(status: number, failure: CallFailure = {}): void {
    const { telemetry, callLines } = this.#deps
    const { code, cause, caller } = failure
    const ms = performance.now() - this.#startedAt
    const job = this.#job
    const { times, cacheStatus } = this.#head ?? {}
    this.#span.set({ 'http.response.status_code': status })
    this.#span.end(code)
    const slug = this.#slug
    const { accountId: account, mode } = job ?? caller ?? {}
    const isCountedHere = this.#isCountedHere
    const counted = { slug, mode, status, code: code ?? 'OK', accountId: account, times, cacheStatus }
    telemetry.endedCalls.add({ call: counted, answerMs: ms, isCountedHere })
    const line = {
      requestId: this.#origin.requestId,
      callId: job?.id,
      account,
      slug,
      endpoint: job?.endpoint,
      mode,
      status,
      code,
      // Why the call failed, in the same line: of the upstream, or of what admission needed.
      reason: this.#head?.cause ?? (status > 500 && cause instanceof Error ? cause.message : undefined),
      ms: round(ms),
      queueMs: times && round(times.queueMs),
      permitMs: times && round(times.permitMs),
      upstreamMs: times && round(times.upstreamMs),
      attempts: times?.attempts,
      cache: cacheStatus,
    }
    if (job) callLines.admitted(line)
    else callLines.refused(line, { account, codes: { [code ?? status]: 1 }, message: 'call' })
    if (isCountedHere) this.#writeRow({ status, totalMs: ms }, failure)
  }

  /** A call whose credential was refused has no account, and so no row. */
  #writeRow(end: { status: number; totalMs: number }, { code, caller, callId, retryAfterMs }: CallFailure): void {
    const { callLog, config } = this.#deps
    const job = this.#job
    const of = job ?? caller
    if (!of) return
    const { accountId, keyId, mode } = of
    const { times, cacheStatus, cause } = this.#head ?? {}
    const origin = job || retryAfterMs === undefined ? this.#origin : { ...this.#origin, quotedMs: retryAfterMs }
    callLog.write({
      ...end,
      ...{ id: job?.id ?? callId, origin, accountId, keyId, mode, slug: this.#slug, endpoint: this.#endpoint },
      ...{ code, cause, times, cacheStatus, bytes: this.#bytes },
      refusedBy: job || !caller ? undefined : config.plans[planOf(caller.tier)],
    })
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
