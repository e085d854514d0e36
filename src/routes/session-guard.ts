import type { FastifyRequest } from 'fastify'
import { type SessionClaims, verifySessionToken } from '../accounts/session-token.ts'
import { answerLimits } from '../admission/answer-limits.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import { findSessionUser, type SessionUser } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import { readBearer } from '../http/request/bearer.ts'
import { acceptIdsInAnyCase } from '../http/request/ids-in-any-case.ts'
import type { App } from '../http/request/typed-app.ts'
import { countBytesForAccount } from '../http/server/holding.ts'

/** The account and session of a request on a guarded route. */
export interface Session {
  user: SessionUser
  id: string
}

const sessions = new WeakMap<object, Session>()

/**
 * Guards every route of a scope. A request needs a session token. The session is looked up for each
 * request, so that a log-out or the disabling of an account counts at once on every node. Before a
 * write, the session is looked up again after the body has arrived, because a caller may delay a
 * body until the session has ended. API keys are not accepted.
 */
export function guardWithSession(scope: App, context: Context): void {
  const { config, clock } = context
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, guard: 'session' }
  })
  acceptIdsInAnyCase(scope)
  answerLimits(scope, context, (request) => {
    const user = sessions.get(request)?.user
    return user && { accountId: user.id, tier: user.tier, mode: 'live' }
  })
  scope.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const token = readBearer(request.headers)
    // A session token contains dots; API keys and access tokens of applications do not.
    if (token === undefined || !token.includes('.')) throw sessionRequired(request, token)
    const claims = await verifySessionToken(config.secrets.jwt, token, clock.now())
    await identify(context, request, claims)
    countBytesForAccount(request, claims.userId)
  })
  scope.addHook('preValidation', async (request) => {
    if (request.method === 'GET' || request.method === 'HEAD') return
    normaliseNames(request.body)
    await checkSession(context, sessionOf(request))
  })
}

/**
 * Looks a session up again, before a step of a request that takes long.
 *
 * @throws GatewayError INVALID_TOKEN if the session has ended
 */
export async function checkSession({ db }: Pick<Context, 'db'>, { user, id }: Session): Promise<void> {
  if (!(await findSessionUser(db, user.id, id))) throw new GatewayError('INVALID_TOKEN')
}

/**
 * Looks up the session of a request. If the account is over its limit, the request is refused
 * before Postgres is read. If the session has ended, this counts against the client, like an
 * unknown key, and not against the account: a thief of the token must not be able to lock the owner
 * out.
 *
 * @throws GatewayError INVALID_TOKEN or RATE_LIMIT_EXCEEDED
 */
async function identify(
  { db, strangersDb, unknownKeys, knownSessions, accountRequests }: Context,
  request: FastifyRequest,
  { userId, sessionId: id }: SessionClaims,
): Promise<void> {
  const find = async (from: Db): Promise<SessionUser> => {
    const user = await findSessionUser(from, userId, id)
    if (user) {
      knownSessions.set(id, user)
      return user
    }
    knownSessions.delete(id)
    sessions.delete(request)
    throw new GatewayError('INVALID_TOKEN')
  }
  const known = knownSessions.get(id)
  const user = known ?? (await unknownKeys.lookUp(`session ${id}`, request.ip, () => find(strangersDb)))
  // Set before the limit is checked, because its refusal shows what the account has left.
  sessions.set(request, { user, id })
  accountRequests.takeForSession(userId)
  if (known) sessions.set(request, { user: await find(db), id })
}

/**
 * Brings names in bodies into one Unicode form before anything counts, stores or compares their
 * characters.
 */
function normaliseNames(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  for (const name of ['label', 'name']) {
    const given: unknown = Reflect.get(body, name)
    if (typeof given === 'string') Reflect.set(body, name, given.normalize('NFC'))
  }
}

/**
 * The refusal of a request without a session. Its hint names the credential of account routes,
 * because the usual hint names API keys.
 */
function sessionRequired({ headers }: Pick<FastifyRequest, 'headers'>, token: string | undefined): GatewayError {
  const message =
    token === undefined && headers['x-api-key'] === undefined
      ? 'Account routes need the session token of a log-in.'
      : 'Account routes need the session token of a log-in; API keys and access tokens are only valid for calls.'
  const hint = 'Log in with POST /v1/auth/login and send its token as Authorization: Bearer'
  return new GatewayError(token === undefined ? 'AUTH_REQUIRED' : 'INVALID_TOKEN', { message, hint })
}

/** The session of a request on a guarded route. */
export function sessionOf(request: Pick<FastifyRequest, 'id'>): Session {
  const session = sessions.get(request)
  if (!session) throw new Error('the route is not guarded')
  return session
}
