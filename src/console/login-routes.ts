import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'
import { retryAfterSeconds } from '../http/answer/public-error.ts'
import { readCookie, writeSessionCookie } from '../http/request/cookies.ts'
import { takeForms } from '../http/request/form-body.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { ownPath } from '../identity/own-path.ts'
import { isOperatorName, NAME_COOKIE, TOKEN_OPERATOR, unprovenActor } from '../operator/actor.ts'
import { recordLogin } from '../operator/record-login.ts'
import type { RedisClock } from '../redis/clock.ts'
import { operatorThrottles, type ThrottleDeps, takeThrottles } from '../throttles/throttle.ts'
import { loginPage, PAGE_HEADERS } from './login-page.ts'
import { refuseForeignOrigin } from './operator-guard.ts'
import { COOKIE, consoleCookie, isSameSecret, type OperatorSessions } from './operator-session.ts'

export interface LoginDeps extends ThrottleDeps {
  config: Config
  sessions: OperatorSessions
  db: Db
  clock: Pick<RedisClock, 'now'>
}

/** Log-in and log-out. Only they and the sign-in at the provider have no guard. */
export async function loginRoutes(app: App, deps: LoginDeps): Promise<void> {
  const { config, sessions, db } = deps
  const { operatorAccess, secrets } = config
  const { operatorToken } = secrets
  takeForms(app)

  const login = {
    schema: {
      body: Type.Object({
        token: Type.String({ maxLength: 1_000 }),
        next: Type.Optional(Type.String({ maxLength: 2_000 })),
        name: Type.Optional(Type.String({ maxLength: 64 })),
      }),
      response: { 303: NoContent, '4xx': Type.String() },
    },
  }
  app.post('/login', login, async (request, reply) => {
    // A page of another site must not log a person in without their knowledge.
    refuseForeignOrigin(request, 'cookie')
    reply.header('cache-control', 'no-store').headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    // Compared before the throttle, so that the correct token always works, however often others at
    // this address guessed.
    const { token, next, name = '' } = request.body
    if (!operatorAccess.isTokenLoginOn || !isSameSecret(token, operatorToken))
      return await refuseLogin(request, reply, { ...deps, next: ownPath(next) })
    // If people sign in with their own names, the token is only for the time when that does not
    // work.
    if (operatorAccess.oidc ?? operatorAccess.trustedHeader)
      request.log.warn({ address: request.ip }, 'somebody logged in with OPERATOR_TOKEN')
    await recordLogin(db, request, { actor: unprovenActor(request, name.trim()), role: TOKEN_OPERATOR.role })
    const isSecure = isOnTls(request)
    const cookies = [
      consoleCookie(await sessions.begin(TOKEN_OPERATOR), isSecure),
      ...nameCookie(name.trim(), isSecure),
    ]
    reply.header('set-cookie', cookies)
    return reply.redirect(ownPath(next), 303)
  })

  app.post('/logout', { schema: { response: { 303: NoContent } } }, async (request, reply) => {
    refuseForeignOrigin(request, 'cookie')
    reply.header('set-cookie', consoleCookie(undefined, isOnTls(request)))
    const id = readCookie(request.headers.cookie, COOKIE)
    // Without Redis, other processes cannot learn of the log-out, so the answer is 503 and not the
    // log-in form.
    if (id !== undefined) await sessions.end(id)
    return reply.redirect('/', 303)
  })
}

/** How long a browser remembers the name of its operator, seconds. */
const NAME_SECONDS = 365 * 86_400

/**
 * The cookie with the name in the audit log for this browser. No cookie if no name, or no
 * acceptable name, was given.
 */
function nameCookie(name: string, isSecure: boolean): string[] {
  if (!isOperatorName(name)) return []
  return [writeSessionCookie({ name: NAME_COOKIE, value: name, lifeSeconds: NAME_SECONDS, isSecure })]
}

/** Counts a wrong token and refuses it. A client that continues to guess gets 429. */
async function refuseLogin(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: LoginDeps & { next: string },
): Promise<string> {
  const { next, config } = deps
  const access = config.operatorAccess
  request.log.warn({ address: request.ip }, 'operator log-in refused')
  try {
    await takeThrottles(deps, operatorThrottles(request.ip))
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const seconds = retryAfterSeconds(error) ?? 1
    reply.status(error.status).header('retry-after', seconds)
    return loginPage({ access, next, problem: `Too many attempts. Try again in ${seconds} seconds.` })
  }
  reply.status(401)
  const problem = 'Wrong token. The operator token is the value of OPERATOR_TOKEN, which npm start prints.'
  return loginPage({ access, next, problem })
}

/**
 * Whether the browser used TLS, which may end at a proxy. The form's `Origin` shows it. If the
 * cookie were marked Secure without TLS, the browser would drop it and nobody could log in.
 */
function isOnTls({ headers, protocol }: FastifyRequest): boolean {
  return (headers.origin ?? `${protocol}:`).startsWith('https:')
}
