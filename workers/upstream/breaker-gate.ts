import { randomUUID } from 'node:crypto'
import { HALF_OPEN_WAIT_MS } from '../../src/health/health-thresholds.ts'
import { acquireHalfOpenSlot } from '../../src/health/record.ts'
import { enqueueProbe, halfOpenProbe } from '../../src/queue/probe-job.ts'
import { type AttemptError, refusedAttempt } from '../errors/attempt-error.ts'
import type { RecordedRequest } from './record-attempt.ts'
import type { UpstreamDeps } from './upstream-deps.ts'

/**
 * The breaker before the attempts of one call or probe. While it is open, half-open attempts alone
 * pass, one at a time.
 */
export class BreakerGate {
  readonly #deps: UpstreamDeps
  readonly #request: Pick<RecordedRequest, 'slug' | 'skipsPause' | 'isPlain' | 'voter'>
  /**
   * Token of the half-open slot that the requests share, redirects included, until their outcome is
   * counted; undefined while the breaker is closed.
   */
  halfOpenToken: string | undefined

  constructor(deps: UpstreamDeps, request: Pick<RecordedRequest, 'slug' | 'skipsPause' | 'isPlain' | 'voter'>) {
    this.#deps = deps
    this.#request = request
  }

  /**
   * Milliseconds until an attempt may go: 0 is now, undefined means that the breaker is closed. A
   * request that holds the half-open slot need not wait.
   */
  #waitMs(): number | undefined {
    const { slug, skipsPause } = this.#request
    const waitMs = this.#deps.health.breakerWaitMsOfUpstream(slug)
    return waitMs !== undefined && (skipsPause || this.halfOpenToken !== undefined) ? 0 : waitMs
  }

  #openError(retryAfterMs: number): AttemptError {
    const { lastFailure } = this.#deps.health.ofUpstream(this.#request.slug)
    return refusedAttempt({ reason: 'down', retryAfterMs, lastFailure })
  }

  /** Why a wait for a permit is useless: the breaker is open. */
  readonly refusal = (): AttemptError | undefined => {
    const waitMs = this.#waitMs()
    return waitMs ? this.#openError(waitMs) : undefined
  }

  /**
   * Takes the half-open slot, unless the breaker is closed.
   *
   * @throws AttemptError if the breaker is open
   */
  async enter(): Promise<void> {
    const { slug, skipsPause, isPlain, voter } = this.#request
    const waitMs = this.#waitMs()
    if (this.halfOpenToken !== undefined || waitMs === undefined) return
    if (waitMs > 0) throw this.#openError(waitMs)
    if (!isPlain) this.#leaveToProbe()
    const token = randomUUID()
    const answer = await acquireHalfOpenSlot(this.#deps.redis, slug, { token, voter, skipsPause: skipsPause === true })
    if (answer.kind === 'wait') throw this.#openError(answer.waitMs)
    if (answer.kind === 'probe') this.#leaveToProbe()
    if (answer.kind === 'slot') this.halfOpenToken = token
  }

  /**
   * Call it when the outcome is about to be counted under the slot, which frees the slot.
   *
   * @returns its token
   */
  leave(): string | undefined {
    const token = this.halfOpenToken
    this.halfOpenToken = undefined
    return token
  }

  /**
   * Schedules a probe and refuses the call, because a call that may fail by its caller's doing says
   * nothing of the upstream.
   *
   * @throws AttemptError
   */
  #leaveToProbe(): never {
    const { slug } = this.#request
    const { halfOpenAt } = this.#deps.health.ofUpstream(slug)
    scheduleProbe(this.#deps, slug, { name: halfOpenProbe(halfOpenAt) })
    throw this.#openError(HALF_OPEN_WAIT_MS)
  }
}

/**
 * Schedules a probe in the background. However many calls schedule a probe of one name, one is
 * made.
 */
export function scheduleProbe(
  { queues, log }: Pick<UpstreamDeps, 'queues' | 'log'>,
  slug: string,
  how: Parameters<typeof enqueueProbe>[2],
): void {
  enqueueProbe(queues, slug, how).catch((error) => log.warn({ err: error, slug }, 'failed to schedule a probe'))
}
