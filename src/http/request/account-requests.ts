import { GatewayError } from '../../errors.ts'
import { TokenBuckets } from '../../throttles/token-buckets.ts'
import { isMadeByTool } from './caller-socket.ts'

/** Size of a bucket, as seconds of its rate: so many requests may come at once. */
const BURST_SECONDS = 2

/** Most debt for work that is already done, as seconds of the rate. */
const OWED_SECONDS = 10

/**
 * Limits the requests of an account that do not count against its plan, in this process: all
 * requests outside the proxy route, and refused calls. Each costs work. Sessions, refused calls,
 * and keys with access tokens are counted separately: the owner can still log in and revoke a
 * leaked key while it is being abused, and an account that polls without end can still make calls.
 * A subject is an account, or the strangers who use a key of the account (`requestSubject`).
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
    this.take(`session:${accountId}`)
  }

  /**
   * A request with a key or an access token.
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  take(subject: string, units = 1): void {
    // A tool makes the request inside this process, and the request of its client has been counted.
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.take(subject, units)
    if (retryAfterMs > 0) throw tooMany('This account sends too many requests at once.', retryAfterMs)
  }

  /** Charges work whose size is known only afterwards. Later requests wait until it is paid. */
  chargeWork(accountId: string, units: number): void {
    this.#buckets.charge(accountId, units, this.#owedMax)
  }

  /** Counts a refused call. It does not count against the account's plan, but it costs work. */
  countRefusedCall(subject: string, units = 1): void {
    if (!isMadeByTool()) this.#buckets.charge(`refused:${subject}`, units)
  }

  /**
   * Checks before a call whether too many calls were refused. Fails open for calls that run at the
   * same time.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  checkRefusedCalls(subject: string): void {
    if (isMadeByTool()) return
    const retryAfterMs = this.#buckets.waitMs(`refused:${subject}`)
    if (retryAfterMs > 0)
      throw tooMany('The gateway has refused too many calls of this account in a short time.', retryAfterMs)
  }
}

function tooMany(message: string, retryAfterMs: number): GatewayError {
  return new GatewayError('RATE_LIMIT_EXCEEDED', { message, hint: 'Wait and send the request again', retryAfterMs })
}
