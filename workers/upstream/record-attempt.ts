import { FAILURES_TO_OPEN, HANGING_MS, HANGING_P95_TIMES, LEFT_MS } from '../../src/health/health-thresholds.ts'
import type { LastFailure } from '../../src/health/health-view.ts'
import { type AttemptRecord, noteFailure, recordAttempt } from '../../src/health/record.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { startAttemptSpan } from '../../src/telemetry/spans.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import { AttemptError, EndedUnsentError, StalePermitError, UnsentError } from '../errors/attempt-error.ts'
import type { MemoryShare } from './answer-memory.ts'
import { isOfGateway, REDIRECT, resultOf } from './attempt-result.ts'
import { BreakerGate, scheduleProbe } from './breaker-gate.ts'
import { describeFailure, type Seen } from './failure-words.ts'
import { type AnswerData, membersSeen } from './lacking-members.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import type { WireRequest } from './upstream-request.ts'

export interface RecordedRequest {
  slug: string
  source: 'call' | 'probe'
  /** Path of the endpoint that is called; absent for the cheapest request. */
  endpoint?: string | undefined
  /** Whether a caller added nothing to it. */
  isPlain: boolean
  /** See `voterOf`; absent for a probe. */
  voter?: string
  /** Requests that the upstream takes at once: when all of them hang, that is enough to know. */
  concurrency: number
  /** Skips the pause of an open breaker. */
  skipsPause?: boolean | undefined
  /** Decides alone whether the breaker opens. */
  isDecisive?: boolean | undefined
  /** Its answers may wait for memory of this worker, which says nothing of the upstream. */
  memory?: Pick<MemoryShare, 'waitedMs'>
  traceparent?: string | undefined
}

/** `beganAt`: by the clock of the recorder. */
interface Attempt {
  beganAt: number
  hasHung: boolean
  span: ReturnType<typeof startAttemptSpan> | undefined
  hanging?: NodeJS.Timeout
}

type SeenWithCode = Omit<Seen, 'ms'> & { code: string | undefined }

export type FailureWords = Omit<LastFailure, 'at'>

/** An attempt that ended, or hangs. Its half-open slot is added when it is counted. */
type ObservedAttempt = Omit<AttemptRecord, 'slot'> & { seen: Seen }

/**
 * The health side of one call's or probe's attempts: counts each once. These do not count: a
 * refusal by the cap, a lost lock, a failure that parameters of the caller may have caused, and an
 * attempt that its deadline or its caller ended too early to tell.
 */
export class AttemptRecorder {
  readonly #deps: UpstreamDeps
  readonly request: RecordedRequest
  /** Attempts whose answers are not read yet, so that it is not certain what they say of health. */
  #unread: ObservedAttempt[] = []
  /** The attempt that is under way. */
  #attempt: Attempt | undefined
  /** What came of the last attempt that counts; undefined if it succeeded. */
  lastFailure: FailureWords | undefined
  #hasFailed = false
  #retries = 0
  /**
   * Settles when the attempts that have ended are counted, and their slot is free as far as this
   * process knows. Never rejects. Undefined if nothing was sent to be counted at once.
   */
  counting: Promise<void> | undefined

  /** Refuses an attempt before its wait for a permit, during the wait and after it. */
  readonly gate: BreakerGate

  constructor(deps: UpstreamDeps, request: RecordedRequest) {
    this.#deps = deps
    this.request = request
    this.gate = new BreakerGate(deps, request)
  }

  /** An attempt begins, which the gate let through. Attempts follow one another. */
  begin(request: Pick<WireRequest, 'origin' | 'method'>): void {
    // A redirect is no failure of its own if the call makes another request after it.
    for (const unread of this.#unread) if (unread.code === REDIRECT) unread.result = 'none'
    const { tracing } = this.#deps.telemetry
    const span = tracing && startAttemptSpan(tracing, request, { ...this.request, resends: this.#retries })
    this.#attempt = { beganAt: this.#now(), hasHung: false, span }
    this.#watch(this.#attempt, HANGING_MS)
  }

  /** The attempt was answered. `code`: the class of the answer, if it is not data. */
  end(status: number, code: string | undefined): void {
    const attempt = this.#attempt
    if (!attempt) return
    attempt.span?.set({ 'http.response.status_code': status })
    attempt.span?.end(code)
    this.#deps.unanswered.forget(this.request.slug)
    const kind = code === undefined ? 'ok' : this.#resultOfAnswer(code)
    const observed = this.#over(attempt, kind, { code, status })
    // Another request may follow a redirect, and the body of a good answer may prove invalid.
    const isCertain = kind === 'fail' && code !== REDIRECT
    if (isCertain) this.#count(observed, this.gate.leave())
    else this.#unread.push(observed)
  }

  /** The attempt failed, if any is under way. */
  fail(error: unknown): void {
    const attempt = this.#attempt
    if (!attempt) return
    const tookMs = this.#now() - attempt.beganAt
    const code = this.#failureOf(error, tookMs)
    this.#trackUnanswered(error, code, tookMs)
    attempt.span?.end(error instanceof AttemptError ? error.code : 'CALL_ENDED')
    const result = code === undefined ? 'none' : resultOf(code, this.request)
    const observed = this.#over(attempt, result === 'fail' && attempt.hasHung ? 'late' : result, { code, error })
    // If nothing was sent, or the worker lost the call, the caller did not waste a half-open slot.
    if (code === undefined && (error instanceof UnsentError || error === LOCK_LOST)) observed.voter = undefined
    this.#count(observed, this.gate.leave())
  }

  /** What the end of an attempt says. */
  #over(attempt: Attempt, result: AttemptRecord['result'], seen: SeenWithCode): ObservedAttempt {
    clearTimeout(attempt.hanging)
    this.#attempt = undefined
    return this.#observe(attempt, result, seen)
  }

  #observe(attempt: Attempt, result: AttemptRecord['result'], { code, ...seen }: SeenWithCode): ObservedAttempt {
    const { source, isPlain, voter } = this.request
    const latencyMs = this.#now() - attempt.beganAt
    const ofCode = code === undefined ? {} : { code }
    return { result, ...ofCode, latencyMs, source, isPlain, voter, seen: { ...seen, ms: latencyMs } }
  }

  /** The monotonic clock, which stands still here while an answer waits for memory. */
  #now(): number {
    return performance.now() - (this.request.memory?.waitedMs ?? 0)
  }

  /**
   * Counts the attempts whose answers were not read yet, once they are read. `code`: why the
   * answers cannot be used.
   */
  flush(code?: string): void {
    const unread = this.#unread.splice(0)
    const last = unread.pop()
    for (const earlier of unread) this.#count(earlier)
    if (!last) return
    const isUnusable = code !== undefined && last.result === 'ok'
    const read = isUnusable ? { ...last, result: this.#resultOfAnswer(code), code } : last
    this.#count(read, this.gate.leave())
  }

  #resultOfAnswer(code: string): AttemptRecord['result'] {
    const { source, endpoint } = this.request
    const result = resultOf(code, this.request)
    return result === 'fail' && source === 'probe' && endpoint !== undefined ? 'endpoint-fail' : result
  }

  /**
   * Notes which members the data of the last answer lack. Undeclared parameters may choose what an
   * answer has.
   */
  noteMembers(answer: AnswerData): void {
    const last = this.#unread.at(-1)
    if (last?.result !== 'ok' || !last.isPlain) return
    const { clock, health, telemetry } = this.#deps
    const { slug, source } = this.request
    const knowledge = { known: health.membersOf(slug), isProbe: source === 'probe', now: clock.now() }
    const { seen, isLacking } = membersSeen(answer, knowledge)
    last.members = seen
    if (isLacking) telemetry.metrics.lacking.inc({ slug })
  }

  /**
   * A try of a request begins. The first try has the number 1, and later tries count as retries.
   */
  beginTry(tryNumber: number): void {
    this.#retries = tryNumber - 1
    if (this.#retries > 0) this.#deps.telemetry.metrics.retries.inc({ slug: this.request.slug })
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
    const { unanswered, clock } = this.#deps
    const { slug, source } = this.request
    if (code !== undefined) unanswered.forget(slug)
    // If the call ended before the attempt did, or this worker lost the call, the upstream left
    // nothing unanswered.
    else if (
      source === 'call' &&
      !(error instanceof UnsentError) &&
      error !== LOCK_LOST &&
      unanswered.recordAbandoned(slug, tookMs)
    )
      scheduleProbe(this.#deps, slug, { name: `unanswered-${clock.now()}`, isForced: true, isDecisive: true })
  }

  /** By when this upstream would long have answered, milliseconds. */
  #longMs(leastMs: number): number {
    const { p95Ms } = this.#deps.health.ofUpstream(this.request.slug).parts
    return Math.max(leastMs, HANGING_P95_TIMES * (p95Ms ?? 0))
  }

  /** Looks after `forMs` whether the attempt hangs, and again if it has more time by then. */
  #watch(attempt: Attempt, forMs: number): void {
    attempt.hanging = setTimeout(() => {
      const leftMs = attempt.beganAt + this.#longMs(HANGING_MS) - this.#now()
      if (leftMs > 0) return this.#watch(attempt, Math.ceil(leftMs))
      attempt.hasHung = true
      const { concurrency, isDecisive } = this.request
      const failuresToOpen = isDecisive ? 1 : Math.min(FAILURES_TO_OPEN, concurrency)
      // It keeps its half-open slot until it ends.
      this.counting = this.#send({
        ...this.#observe(attempt, 'hanging', { code: 'UPSTREAM_TIMEOUT' }),
        failuresToOpen,
      })
    }, forMs)
  }

  /**
   * Counts an attempt that ended: a call's success in a batch, any other at once. `slot`: the
   * half-open slot, which the count of the last attempt frees for all attempts before it.
   */
  #count(record: ObservedAttempt, slot?: string): void {
    const { slug } = this.request
    const { result, source } = record
    const { successes, telemetry } = this.#deps
    // It may have counted as hanging before its answer came.
    if (result === 'ok') this.lastFailure = undefined
    if (result === 'ok' && source === 'call' && slot === undefined && record.members === undefined) {
      successes.add(slug, record.latencyMs)
      return
    }
    if (result !== 'none') {
      telemetry.metrics.attempts.inc({ slug, result: result === 'ok' ? 'ok' : 'fail', source })
    } else {
      // It says nothing of health, and is what came of the last attempt all the same.
      if (isOfGateway(record)) this.#noteFailure(record.code ?? '', record.seen)
      if (slot === undefined) return
    }
    successes.flush(slug)
    // The reply does not wait for it.
    this.counting = this.#send({ ...record, slot, isRepeat: this.#hasFailed })
    if (result === 'fail' || result === 'late') this.#hasFailed = true
  }

  /** Sends the count of an attempt to Redis, and does what follows from it. Never throws. */
  async #send({ seen, ...record }: AttemptRecord & Pick<ObservedAttempt, 'seen'>): Promise<void> {
    const { redis, clock, health, caps, log } = this.#deps
    const { slug } = this.request
    const { result, code = '' } = record
    if (result !== 'ok' && result !== 'none') this.#noteFailure(code, seen)
    try {
      const { changed, needsProbe, hasClosed, probedEndpoint } = await recordAttempt(redis, slug, record)
      // First: when the calls of this process learn that the breaker closed, they all go on at
      // once.
      if (hasClosed) await caps.of({ slug }, SHARED_BUCKET).beginGradually()
      if (changed) await health.read(slug)
      if (needsProbe) scheduleProbe(this.#deps, slug, { name: `confirm-${clock.now()}`, isForced: true })
      if (probedEndpoint !== undefined)
        scheduleProbe(this.#deps, slug, { name: `members-${clock.now()}`, isForced: true, endpoint: probedEndpoint })
    } catch (error) {
      // Lost if Redis is away: a score can miss a sample.
      log.warn({ err: error, slug }, 'failed to count an attempt')
    }
  }

  #noteFailure(code: string, seen: Seen): void {
    const { redis, clock, log } = this.#deps
    const { slug, endpoint } = this.request
    this.lastFailure = { code, ...describeFailure(code, seen), endpoint }
    noteFailure(redis, slug, { at: clock.now(), ...this.lastFailure }).catch((error) =>
      log.debug({ err: error, slug }, 'failed to note why an attempt failed'),
    )
  }
}
