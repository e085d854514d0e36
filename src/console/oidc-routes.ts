import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { readCookie, writeCookie } from '../http/request/cookies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { operatorThrottle, type ThrottleDeps, takeThrottle } from '../limits/throttle.ts'
import { setOperator } from '../operator/actor.ts'
import { recordLogin } from '../operator/record-login.ts'
import { enteringPage, loginPage, PAGE_HEADERS } from './login-page.ts'
import { ownPath } from './login-routes.ts'
import { NoGroupError, OidcSignIn, SIGN_IN_SECONDS } from './oidc-sign-in.ts'
import { consoleCookie, type OperatorSessions } from './operator-session.ts'

export interface OidcRoutesDeps extends ThrottleDeps {
  config: Config
  sessions: OperatorSessions
  db: Db
}

/**
 * The cookie of a sign-in under way. It comes back with a person whom another site sends: Lax, not
 * Strict.
 */
const PENDING = 'agw_console_sign_in'

const FAILED = 'The sign-in did not work. Try again; the log of the console says why.'

/** Sign-in by the OIDC provider, if the operator has set a provider. */
export async function oidcRoutes(app: App, deps: OidcRoutesDeps): Promise<void> {
  const { config, sessions, db } = deps
  const access = config.operatorAccess
  if (access.oidc === undefined) return
  const signIn = new OidcSignIn(access, access.oidc, config.secrets.encryption)
  app.addHook('onClose', async () => await signIn.close())
  const answers = {
    schema: { response: { 200: Type.String(), 303: NoContent, '4xx': Type.String(), '5xx': Type.String() } },
  }

  const Begin = Type.Object({ next: Type.Optional(Type.String({ maxLength: 2_000 })) })
  app.get('/login/oidc', { schema: { ...answers.schema, querystring: Begin } }, async (request, reply) => {
    try {
      const next = ownPath(request.query.next)
      const { url, cookie } = await signIn.begin(`${originOf(request)}/login/callback`, next)
      return reply
        .header('set-cookie', pendingCookie(request, cookie))
        .header('cache-control', 'no-store')
        .redirect(url, 303)
    } catch (error) {
      request.log.warn({ err: error, issuer: access.oidc?.issuer.href }, 'the OIDC provider does not answer')
      page(reply, 503)
      return loginPage({
        access,
        problem: 'The sign-in provider does not answer. Try again, or use the operator token.',
      })
    }
  })

  app.get('/login/callback', answers, async (request, reply) => {
    const pending = readCookie(request.headers.cookie, PENDING)
    const query = request.url.slice(request.url.indexOf('?'))
    try {
      const { subject, next, ...operator } = await signIn.finish(query, pending ?? '')
      setOperator(request, operator)
      await recordLogin(db, request, { subject, role: operator.role })
      const session = consoleCookie(await sessions.begin(operator), request.protocol === 'https')
      page(reply, 200).header('set-cookie', [session, pendingCookie(request, undefined)])
      return enteringPage(next)
    } catch (error) {
      request.log.warn({ err: error, address: request.ip }, 'operator sign-in refused')
      await takeThrottle(deps, operatorThrottle(request.ip))
      const isKnown = error instanceof NoGroupError
      page(reply, isKnown ? 403 : 401).header('set-cookie', pendingCookie(request, undefined))
      return loginPage({ access, problem: isKnown ? 'Your account is in no group that may use the console.' : FAILED })
    }
  })
}

function page(reply: FastifyReply, status: number): FastifyReply {
  return reply.status(status).header('cache-control', 'no-store').headers(PAGE_HEADERS).type('text/html; charset=utf-8')
}

/**
 * The address of the console as the person's browser knows it; the provider takes it only if it was
 * registered there.
 */
function originOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${host}`
}

function pendingCookie(request: FastifyRequest, value: string | undefined): string {
  return writeCookie({
    ...{ name: PENDING, value, lifeSeconds: SIGN_IN_SECONDS, path: '/login', sameSite: 'lax' },
    isSecure: request.protocol === 'https',
  })
}
