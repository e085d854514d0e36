import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Tier } from '../catalog/upstream.ts'
import { ANY_VERSION } from '../limits/account-limits.ts'
import type { LimitState } from '../limits/limit-state.ts'
import { type LimitDeps, limitQuery } from './acquire-limits.ts'
import type { Principal } from './authenticate.ts'
import { rateLimitHeaders } from './rate-limit-headers.ts'

/**
 * Longest wait of an answer for its headers, milliseconds. Fails open: the answer is sent without
 * them.
 */
const READ_MS_MAX = 250

export interface LimitedAccount extends Pick<Principal, 'accountId' | 'mode' | 'allowance'> {
  tier: Tier
}

/**
 * Adds headers with the account's remaining allowance to every answer of a scope, including
 * refusals. The requests take no unit. Reading costs a round trip.
 * @param accountOf undefined if the credential was refused
 */
export function answerLimits(
  scope: FastifyInstance,
  deps: LimitDeps,
  accountOf: (request: FastifyRequest) => LimitedAccount | undefined,
): void {
  scope.addHook('onSend', async (request, reply) => {
    const account = accountOf(request)
    if (!account || reply.hasHeader('ratelimit') || reply.raw.headersSent) return
    const reading = readLimits(deps, account).catch(() => undefined)
    const state = await Promise.race([reading, delay(READ_MS_MAX, undefined, { ref: false })])
    if (state) reply.headers(rateLimitHeaders(state))
  })
}

/**
 * What an account has left, under its present rights.
 *
 * @throws what Redis and Postgres throw
 */
export async function readLimits(deps: LimitDeps, account: LimitedAccount): Promise<LimitState> {
  const { tier, accountId, mode, allowance } = account
  const subject = { accountId, mode, allowance, tier, version: ANY_VERSION }
  return await deps.accountLimits.read(limitQuery(deps, subject, 0))
}
