import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { writeLastFailure } from '../../src/fleet/last-failure.ts'
import type { FailureRow } from '../../src/fleet/snapshot.ts'
import { FAILURES_TO_OPEN, HANGING_MS, HANGING_P95_TIMES, LEFT_MS } from '../../src/health/health-thresholds.ts'
import { type AttemptRecord, recordAttempt } from '../../src/health/record.ts'
import { startAttemptSpan } from '../../src/telemetry/spans.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import { AttemptError, EndedUnsentError, mayBeSent, StalePermitError } from '../errors/attempt-error.ts'
import { isOfGateway, type ObservedResult, REDIRECT, resultOf } from './attempt-result.ts'
import { BreakerGate, scheduleProbe } from './breaker-gate.ts'
import { describeFailure, type Seen } from './failure-words.ts'
import { onHanging } from './hanging.ts'
import type { HealthDeps } from './health-deps.ts'
import { type Answered, membersSeen } from './lacking-members.ts'
import type { WireRequest } from './upstream-request.ts'

export interface RecordedRequest {
  slug: string
  source: 'call' | 'probe'
  /** Whether a caller added nothing to it. */
  isPlain: boolean
  /** See `voterOf`; absent for a probe. */
  voter?: string
  /** Requests that the upstream takes at once: when all of them hang, that is enough to know. */
  concurrency: number
  /** Skips the pause of an open breaker. */
  isForced?: boolean
  /** Decides alone whether the breaker opens. */
  isDecisive?: boolean
  /**
   * How long its answers have waited so far for memory of this worker, which says nothing of the
   * upstream. Milliseconds.
   */
  waitedForUsMs?: () => number
  traceparent?: string | undefined
}

export type FailureWords = Omit<FailureRow, 'at'>

type ObservedAttempt = AttemptRecord & { seen: Seen }

/**
 * The health side of one call's or probe's attempts: counts each once. These do not count: a
 * refusal by the cap, a lost lock, a failure that parameters of the caller may have caused, and an
 * attempt that its deadline or its caller ended too early to tell.
 */
export class AttemptRecorder {
  readonly #deps: HealthDeps
  readonly request: RecordedRequest
  /**
   * Kept until the whole answer was read: a body may prove invalid only then, and a redirect leads
   * to another request.
   */
  #answered: ObservedAttempt[] = []
  #lastFailure: FailureWords | undefined
  #hasFailed = false
  #resends = 0
  #counted: Promise<void> | undefined

  /** Before each attempt, and while it waits for a permit. */
  readonly gate: BreakerGate

  constructor(deps: HealthDeps, request: RecordedRequest) {
    this.#deps = deps
    this.request = request
    this.gate = new BreakerGate(deps, request)
  }

  /** Counts what comes of an attempt, which the gate let through. @throws what `run` throws */
  async observe<T extends ObservedResult>(
    run: () => Promise<T>,
    request: Pick<WireRequest, 'origin' | 'method'>,
  ): Promise<T> {
    const { slug, source, isPlain, voter } = this.request
    const { halfOpenToken: slot } = this.gate
    // Another request follows where they lead, or is made beside them.
    for (const answered of this.#answered) if (answered.code === REDIRECT) answered.result = 'none'
    const startedAt = performance.now() - this.#waitedForUsMs()
    const tookMs = (): number => performance.now() - startedAt - this.#waitedForUsMs()
    const { tracing } = this.#deps.telemetry
    const span = tracing && startAttemptSpan(tracing, request, { ...this.request, resends: this.#resends })
    const record = (result: AttemptRecord['result'], code?: string, seen?: Omit<Seen, 'ms'>): ObservedAttempt => {
      const latencyMs = tookMs()
      const attempt = { result, ...(code === undefined ? {} : { code }), latencyMs, source, isPlain, voter, slot }
      return { ...attempt, seen: { ...seen, ms: latencyMs } }
    }
    const watch = this.#watchHanging(() => record('hanging', 'UPSTREAM_TIMEOUT'))
    try {
      const result = await run()
      const code = result.responseClass?.code
      span?.set({ 'http.response.status_code': result.answer.status })
      span?.end(code)
      this.#deps.unanswered.answered(slug)
      const kind = code === undefined ? 'ok' : resultOf(code, this.request)
      const recorded = record(kind, code, { status: result.answer.status })
      if (recorded.result === 'fail' && code !== REDIRECT) this.#recordAttempt(recorded)
      else this.#answered.push(recorded)
      return result
    } catch (error) {
      const code = this.#failureOf(error, tookMs())
      this.#trackUnanswered(error, code, tookMs())
      span?.end(error instanceof AttemptError ? error.code : 'CALL_ENDED')
      const result = code === undefined ? 'none' : resultOf(code, this.request)
      this.#recordAttempt(record(result === 'fail' && watch.isCounted() ? 'late' : result, code, { error }))
      throw error
    } finally {
      watch.stop()
    }
  }

  /** Counts what was answered, once the answers were read; `code` is why they cannot be used. */
  flush(code?: string): void {
    const last = this.#answered.at(-1)
    if (code !== undefined && last?.result === 'ok') Object.assign(last, { result: resultOf(code, this.request), code })
    for (const answered of this.#answered.slice(0, -1)) answered.slot = undefined
    for (const answered of this.#answered.splice(0)) this.#recordAttempt(answered)
  }

  /**
   * Notes which fields the data of the last answer lack. Undeclared parameters may choose what an
   * answer has.
   */
  noteFields(answered: Answered): void {
    const last = this.#answered.at(-1)
    if (last?.result !== 'ok' || !last.isPlain) return
    const { health, telemetry } = this.#deps
    const { slug, source } = this.request
    const knowledge = { known: health.membersOf(slug), isProbe: source === 'probe', now: health.now() }
    const { seen, isLacking } = membersSeen(answered, knowledge)
    last.members = seen
    if (isLacking) telemetry.metrics.lacking.inc({ slug })
  }

  /**
   * Settles when the attempts that have ended are counted, and their slot is free as far as this
   * process knows.
   */
  async untilCounted(): Promise<void> {
    await this.#counted
  }

  /**
   * A try of a request begins. The first try has the number 1, and later tries count as retries.
   */
  beginTry(tryNumber: number): void {
    this.#resends = tryNumber - 1
    if (this.#resends > 0) this.#deps.telemetry.metrics.retries.inc({ slug: this.request.slug })
  }

  get lastFailure(): FailureWords | undefined {
    return this.#lastFailure
  }

  /**
   * The code that an error counts as; undefined: it does not count. If the end of its call ended an
   * attempt, the attempt counts as a timeout if it had taken long.
   */
  #failureOf(error: unknown, tookMs: number): string | undefined {
    const reason = error instanceof EndedUnsentError ? error.cause : error
    if (error instanceof StalePermitError || reason === LOCK_LOST) return undefined
    // Callers leave sooner or later, and deadlines differ: the time that the attempt took decides.
    const mayBeCutShort = !(error instanceof AttemptError) || error.code === 'UPSTREAM_TIMEOUT'
    if (!mayBeCutShort) return error.code
    return tookMs >= this.#longMs(LEFT_MS) ? 'UPSTREAM_TIMEOUT' : undefined
  }

  /** Enough requests that ended with their calls, before they could count, lead to a probe. */
  #trackUnanswered(error: unknown, code: string | undefined, tookMs: number): void {
    const { unanswered, health } = this.#deps
    const { slug, source } = this.request
    if (code !== undefined) unanswered.answered(slug)
    // If nothing was written, or this worker lost the call, the upstream left nothing unanswered.
    else if (source === 'call' && mayBeSent(error) && error !== LOCK_LOST && unanswered.abandoned(slug, tookMs))
      scheduleProbe(this.#deps, slug, { name: `unanswered-${health.now()}`, isForced: true, isDecisive: true })
  }

  /** By when this upstream would long have answered, milliseconds. */
  #longMs(leastMs: number): number {
    const { p95Ms } = this.#deps.health.ofSource(this.request.slug).parts
    return Math.max(leastMs, HANGING_P95_TIMES * (p95Ms ?? 0))
  }

  #waitedForUsMs(): number {
    return this.request.waitedForUsMs?.() ?? 0
  }

  #watchHanging(record: () => ObservedAttempt): { isCounted: () => boolean; stop: () => void } {
    let isCounted = false
    const waitedBefore = this.#waitedForUsMs()
    const limitMs = (): number => this.#longMs(HANGING_MS) + this.#waitedForUsMs() - waitedBefore
    const stop = onHanging({ firstMs: HANGING_MS, limitMs }, () => {
      isCounted = true
      const { concurrency, isDecisive } = this.request
      const failuresToOpen = isDecisive ? 1 : Math.min(FAILURES_TO_OPEN, concurrency)
      // It keeps its half-open slot until it ends.
      this.#counted = this.#count({ ...record(), slot: undefined, failuresToOpen })
    })
    return { isCounted: () => isCounted, stop }
  }

  /** Counts an attempt: a call's success in a batch, any other at once. */
  #recordAttempt(record: ObservedAttempt): void {
    const { slug } = this.request
    const { result, source, slot } = record
    if (slot !== undefined) {
      this.gate.leave()
      for (const answered of this.#answered) answered.slot = undefined
    }
    if (result !== 'none') {
      this.#deps.telemetry.metrics.attempts.inc({ slug, result: result === 'ok' ? 'ok' : 'fail', source })
    } else {
      // It says nothing of health, and is what came of the last attempt all the same.
      if (isOfGateway(record)) this.#noteFailure(record.code ?? '', record.seen)
      if (slot === undefined) return
    }
    const { successes } = this.#deps
    if (result === 'ok' && source === 'call' && slot === undefined && record.members === undefined) {
      successes.add(slug, record.latencyMs)
      return
    }
    successes.flush(slug)
    // The reply does not wait for it.
    this.#counted = this.#count({ ...record, isRepeat: this.#hasFailed })
    if (result === 'fail' || result === 'late') this.#hasFailed = true
  }

  async #count({ seen, ...record }: ObservedAttempt): Promise<void> {
    const { redis, health, caps, log } = this.#deps
    const { slug } = this.request
    const { result, code = '' } = record
    if (result === 'fail' || result === 'late' || result === 'hanging') this.#noteFailure(code, seen)
    try {
      const { changed, needsProbe, hasClosed, probedEndpoint } = await recordAttempt(redis, slug, record)
      // First: when the calls of this process learn that the breaker closed, they all go on at
      // once.
      if (hasClosed) await caps.of({ slug }, SHARED_BUCKET).beginGradually()
      if (changed) await health.read(slug)
      if (needsProbe) scheduleProbe(this.#deps, slug, { name: `confirm-${health.now()}`, isForced: true })
      if (probedEndpoint !== undefined)
        scheduleProbe(this.#deps, slug, { name: `members-${health.now()}`, isForced: true, endpoint: probedEndpoint })
    } catch (error) {
      // Lost if Redis is away: a score can miss a sample.
      log.warn({ err: error, slug }, 'failed to count an attempt')
    }
  }

  #noteFailure(code: string, seen: Seen): void {
    const [{ redis, health, log }, { slug }] = [this.#deps, this.request]
    this.#lastFailure = { code, ...describeFailure(code, seen) }
    writeLastFailure(redis, slug, { at: health.now(), ...this.#lastFailure }).catch((error) =>
      log.debug({ err: error, slug }, 'failed to note why an attempt failed'),
    )
  }
}
