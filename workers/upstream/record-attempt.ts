import type { HealthCache } from '../../src/health/health-watch.ts'
import { type AttemptRecord, recordAttempt, takeTrial } from '../../src/health/record.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'
import type { SuccessBatcher } from './attempt-batcher.ts'
import { AttemptError } from './attempt-error.ts'

export interface HealthDeps {
  redis: RedisConnection
  /** Breakers, as this process follows them. */
  health: HealthCache
  telemetry: Telemetry
  successes: SuccessBatcher
  log: Log
}

/** The breaker is open: nothing was sent. */
export class BreakerOpenError extends AttemptError {
  constructor(waitMs: number) {
    super('UPSTREAM_UNAVAILABLE', false, undefined, waitMs)
  }
}

/** Codes of answers that are the upstream's failure. */
const FAILURES = new Set(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT', 'UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE'])

/** Codes that say nothing of its health: our rate, our key, a redirect that we do not follow. */
const NEUTRAL = new Set(['UPSTREAM_RATE_LIMITED', 'UPSTREAM_AUTH_FAILED', 'UPSTREAM_REDIRECT_BLOCKED'])

/**
 * The health side of one call's or probe's attempts: asks the breaker before each, counts each once, and never by what
 * is our own doing (cap, deadline, cancelled caller, lost lock).
 */
export class AttemptRecorder {
  readonly #sources: HealthDeps
  readonly #slug: string
  readonly #source: 'call' | 'probe'
  readonly #id: string
  /** Answered attempts, kept until the whole call's answer was read: a body may prove invalid only then. */
  #answered: AttemptRecord[] = []
  #trials = 0
  #counted: Promise<void> | undefined
  readonly #isForced: boolean

  readonly #traceparent: string | undefined

  /** `id` makes the call's trial tokens its own; `isForced` takes a trial before its time. */
  constructor(
    sources: HealthDeps,
    slug: string,
    source: 'call' | 'probe',
    id: string,
    options: { isForced?: boolean; traceparent?: string | undefined } = {},
  ) {
    this.#isForced = options.isForced === true
    this.#traceparent = options.traceparent
    this.#sources = sources
    this.#slug = slug
    this.#source = source
    this.#id = id
  }

  /** Refuses an attempt that would only wait for a permit and then be refused. @throws BreakerOpenError */
  refuseWhenOpen(): void {
    const waitMs = this.#isForced ? 0 : this.#sources.health.breakerWaitMs(this.#slug)
    if (waitMs) throw new BreakerOpenError(waitMs)
  }

  /**
   * Runs one attempt. `classify` tells the code of an answer that is not data.
   *
   * @throws what the attempt throws; BreakerOpenError when it may not be made
   */
  async observe<T>(run: () => Promise<T>, classify: (result: T) => string | undefined): Promise<T> {
    const trial = await this.#askBreaker()
    const startedAt = performance.now()
    const span = this.#sources.telemetry.tracing.start('attempt', {
      kind: 'client',
      parent: this.#traceparent,
      attributes: { 'agw.api': this.#slug },
    })
    const record = (result: AttemptRecord['result'], code?: string): AttemptRecord => ({
      result,
      ...(code === undefined ? {} : { code }),
      latencyMs: performance.now() - startedAt,
      source: this.#source,
      trial,
    })
    try {
      const result = await run()
      const code = classify(result)
      span.end(code)
      const judged = record(resultOf(code), code)
      if (judged.result === 'ok') this.#answered.push(judged)
      else this.#send(judged)
      return result
    } catch (error) {
      const code = error instanceof AttemptError ? error.code : undefined
      span.end(code ?? 'not finished')
      this.#send(record(code === undefined ? 'none' : resultOf(code), code))
      throw error
    }
  }

  /**
   * Counts what was answered. Call it once the answers were read, however that ended; `code` is why they cannot be
   * used, and judges the last one.
   */
  flush(code?: string): void {
    const last = this.#answered.at(-1)
    if (code !== undefined && last?.result === 'ok') Object.assign(last, { result: resultOf(code), code })
    for (const answered of this.#answered.splice(0)) this.#send(answered)
  }

  /** One more attempt of the same request follows. */
  repeats(): void {
    this.#sources.telemetry.metrics.retries.inc({ slug: this.#slug })
  }

  async #askBreaker(): Promise<string | undefined> {
    const { redis, health } = this.#sources
    // A repeat comes after its call's failure was counted, which may have opened the breaker.
    await this.#counted
    if (health.breakerWaitMs(this.#slug) === undefined) return undefined
    this.refuseWhenOpen()
    this.#trials += 1
    const token = `${this.#id}:${this.#trials}`
    const answer = await takeTrial(redis, this.#slug, token, { isForced: this.#isForced })
    if (answer.kind === 'wait') throw new BreakerOpenError(answer.waitMs)
    return answer.kind === 'trial' ? token : undefined
  }

  #send(record: AttemptRecord): void {
    if (record.result !== 'none') {
      const { result, source } = record
      this.#sources.telemetry.metrics.attempts.inc({ slug: this.#slug, result, source })
    } else if (record.trial === undefined) return
    const { successes } = this.#sources
    if (record.result === 'ok' && record.source === 'call' && record.trial === undefined) {
      successes.add(this.#slug, record.latencyMs)
      return
    }
    successes.send(this.#slug)
    // The caller's answer does not wait for it.
    this.#counted = this.#count(record)
  }

  async #count(record: AttemptRecord): Promise<void> {
    const { redis, health, log } = this.#sources
    try {
      const { changed } = await recordAttempt(redis, this.#slug, record)
      if (changed) await health.read(this.#slug)
    } catch (error) {
      // Lost where Redis is away: a score stands a missing sample.
      log.warn({ err: error, slug: this.#slug }, 'attempt not counted')
    }
  }
}

function resultOf(code: string | undefined): AttemptRecord['result'] {
  if (code === undefined) return 'ok'
  if (FAILURES.has(code)) return 'fail'
  // "No such thing" and "not these values" are answers.
  return NEUTRAL.has(code) ? 'none' : 'ok'
}
