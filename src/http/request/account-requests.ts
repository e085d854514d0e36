import { GatewayError } from '../../errors.ts'
import { TokenBuckets } from '../../throttles/token-buckets.ts'
import { isMadeByTool } from './caller-socket.ts'

/** Seconds of requests that may come at once. */
const BURST_SECONDS = 2

/** Seconds of requests that work which is done already may use up ahead. */
const OWED_SECONDS = 10

/**
 * Bounds the requests of an account that count for no limit of its plan, in this process. Every
 * request outside the proxy route is such a request: each costs work, whatever it asks for.
 * Requests of its sessions are counted apart from requests of its keys, teams and applications:
 * while a leaked key is used without end, its owner can still log in and revoke it.
 */
export class AccountRequests {
  readonly #buckets: TokenBuckets
  readonly #owedMax: number

  /** 0: no bound. */
  constructor(perSecond: number) {
    this.#owedMax = perSecond * OWED_SECONDS
    this.#buckets = new TokenBuckets({ perSecond, burst: perSecond * BURST_SECONDS })
  }

  /**
   * A request of a session.
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  takeForSession(accountId: string): void {
    this.#take(`session:${accountId}`, 1)
  }

  /**
   * A request with a key or an access token.
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  take(accountId: string, units = 1): void {
    this.#take(accountId, units)
  }

  /** Work that a request turned out to be, when it is done: later requests wait for it. */
  chargeWork(accountId: string, units: number): void {
    this.#buckets.charge(accountId, units, this.#owedMax)
  }

  /** A call that was refused. The account's plan does not count it, but it costs work. */
  countRefusedCall(accountId: string, units = 1): void {
    if (!isMadeByTool()) this.#buckets.charge(refusedCalls(accountId), units)
  }

  /**
   * Before a call. Fails open for calls that are under way together.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  checkRefusedCalls(accountId: string): void {
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.waitMs(refusedCalls(accountId))
    if (retryAfterMs > 0) throw tooMany('Too many calls of this account were refused.', retryAfterMs)
  }

  #take(subject: string, units: number): void {
    // A request that this process makes for one it has let in already.
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.take(subject, units)
    if (retryAfterMs > 0) throw tooMany('Too many requests of this account come at once.', retryAfterMs)
  }
}

/** They are counted apart. If an account polls without end, it can still make calls. */
function refusedCalls(accountId: string): string {
  return `refused:${accountId}`
}

function tooMany(message: string, retryAfterMs: number): GatewayError {
  return new GatewayError('RATE_LIMIT_EXCEEDED', { message, hint: 'Wait and send the request again', retryAfterMs })
}
