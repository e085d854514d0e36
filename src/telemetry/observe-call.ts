import { knownSlug } from '../catalog/catalog.ts'
import type { ErrorCode } from '../errors.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import type { CallLog } from './call-log.ts'
import type { Telemetry } from './telemetry.ts'
import type { CallSpan } from './tracing.ts'

export interface ObservedCallDeps {
  telemetry: Telemetry
  callLog: Pick<CallLog, 'admitted' | 'refused'>
  catalog: ReadonlyMap<string, unknown>
}

type Caller = Pick<CallJob, 'accountId' | 'mode'>

/** Follows one call through an API node: one trace, one log line, one count, whatever comes of it. */
export class ObservedCall {
  readonly #deps: ObservedCallDeps
  readonly #requestId: string
  readonly #startedAt = performance.now()
  readonly #span: CallSpan
  #slug: string
  #job: CallJob | undefined
  #head: ReplyHead | undefined
  #isCountedHere = true

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

  /** An asynchronous call was queued: whatever its caller is answered, its worker counts it when it has ended. */
  leftToWorker(): void {
    this.#isCountedHere = false
  }

  /** The call is answered; `failure` says why it was refused, and whose it was where no job says so. */
  ended(status: number, failure: { code?: ErrorCode; cause?: unknown; caller?: Caller | undefined } = {}): void {
    const { telemetry, callLog } = this.#deps
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
      requestId: this.#requestId,
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
    if (job) callLog.admitted(line)
    else callLog.refused(line, { account, codes: { [code ?? status]: 1 }, message: 'call' })
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
