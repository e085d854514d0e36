import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { AccountRequests } from '../http/request/account-requests.ts'
import { countBytesForAccount } from '../http/server/holding.ts'
import { requireAudience } from '../oauth/resources.ts'
import type { LimitDeps } from './acquire-limits.ts'
import { answerLimits } from './answer-limits.ts'
import { type AuthenticationDeps, authenticateNow, type Principal } from './authenticate.ts'
import { checkMode } from './call-request.ts'
import { checkAddress, requestSubject } from './rights.ts'

export interface RequestCallerDeps extends Omit<AuthenticationDeps, 'config'>, LimitDeps {
  config: Config
  accountRequests: Pick<AccountRequests, 'take'>
}

/**
 * Identifies the senders of requests in a scope whose routes make or look up calls. Such a request
 * takes no unit of the plan. It counts as a request of its account, and its answer says what is
 * left.
 */
export class RequestCallers {
  readonly #deps: RequestCallerDeps
  readonly #principals = new WeakMap<object, Principal>()

  constructor(scope: FastifyInstance, deps: RequestCallerDeps) {
    this.#deps = deps
    answerLimits(scope, deps, (request) => this.of(request))
  }

  /** Undefined until the caller is known. */
  of(request: FastifyRequest): Principal | undefined {
    return this.#principals.get(request)
  }

  /**
   * @param units as how many requests it counts
   * @throws GatewayError if the credential is refused or may not be used from this address, if the
   *   account sends too many requests, or if the mode does not exist
   */
  async identify(request: FastifyRequest, units = 1): Promise<Principal> {
    const { config, accountRequests } = this.#deps
    const principal = await authenticateNow(this.#deps, request)
    this.#principals.set(request, principal)
    const subject = requestSubject(principal, request)
    countBytesForAccount(request, subject)
    accountRequests.take(subject, units)
    // Counted before this check, because a token for another resource costs the same look-up.
    if (principal.connection) requireAudience(principal.connection, request, config.http.baseUrl)
    checkAddress(principal, request)
    checkMode(request)
    return principal
  }
}
