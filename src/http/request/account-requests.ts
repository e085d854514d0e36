import { GatewayError } from '../../errors.ts'
import { TokenBuckets } from '../../throttles/token-buckets.ts'
import { isMadeByTool } from './caller-socket.ts'

/** Size of a bucket, as seconds of its rate: so many requests may come at once. */
const BURST_SECONDS = 2

/** Most debt for work that is already done, as seconds of the rate. */
const OWED_SECONDS = 10

/**
 * Limits the requests of an account that do not count against its plan, in this process. These are
 * all requests outside the proxy route, because each costs work. Requests with a session are
 * counted separately from requests with keys and access tokens, so that the owner can still log in
 * and revoke a leaked key while it is being abused.
 */
export class AccountRequests {
  readonly #buckets: TokenBuckets
  readonly #owedMax: number

  /** @param perSecond 0: no limit */
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

  /** Charges work whose size is known only afterwards. Later requests wait until it is paid. */
  chargeWork(accountId: string, units: number): void {
    this.#buckets.charge(accountId, units, this.#owedMax)
  }

  /** Counts a refused call. It does not count against the account's plan, but it costs work. */
  countRefusedCall(accountId: string, units = 1): void {
    if (!isMadeByTool()) this.#buckets.charge(refusedCalls(accountId), units)
  }

  /**
   * Checks before a call whether too many calls were refused. Fails open for calls that run at the
   * same time.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  checkRefusedCalls(accountId: string): void {
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.waitMs(refusedCalls(accountId))
    if (retryAfterMs > 0)
      throw tooMany('The gateway has refused too many calls of this account in a short time.', retryAfterMs)
  }

  #take(subject: string, units: number): void {
    // A tool makes the request inside this process, and the request of its client has been counted.
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.take(subject, units)
    if (retryAfterMs > 0) throw tooMany('This account sends too many requests at once.', retryAfterMs)
  }
}

/**
 * Refused calls have their own bucket. If an account polls without end, it can still make calls.
 */
function refusedCalls(accountId: string): string {
  return `refused:${accountId}`
}

function tooMany(message: string, retryAfterMs: number): GatewayError {
  return new GatewayError('RATE_LIMIT_EXCEEDED', { message, hint: 'Wait and send the request again', retryAfterMs })
}
