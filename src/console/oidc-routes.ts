import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Config } from '../config.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { OidcSignIn, type Person } from '../identity/oidc-sign-in.ts'
import { ownPath } from '../identity/own-path.ts'
import { type PendingCookie, readPending, writePending } from '../identity/pending-cookie.ts'
import { actorOf, type Operator, provenName, roleIn, setOperator } from '../operator/actor.ts'
import { recordLogin } from '../operator/record-login.ts'
import { operatorThrottles, takeThrottles } from '../throttles/throttle.ts'
import { enteringPage, loginPage, PAGE_HEADERS } from './login-page.ts'
import type { LoginDeps } from './login-routes.ts'
import { consoleCookie } from './operator-session.ts'

const FAILED = 'The sign-in did not work. Try again; the log of the console shows the reason.'

/** The provider knows the person, but none of the person's groups may use the console. */
class NoGroupError extends Error {}

/** Most characters of a claim in the log. */
const CLAIM_CHARS_MAX = 300

/** Sign-in at the OIDC provider, if the operator has configured a provider. */
export async function oidcRoutes(app: App, deps: LoginDeps): Promise<void> {
  const { config, sessions, db, clock } = deps
  const access = config.operatorAccess
  if (access.oidc === undefined) return
  const signIn = new OidcSignIn({
    ...{ provider: access.oidc, secrets: config.secrets.encryption, purpose: 'console sign-in' },
    neededClaims: ['email', access.groupsClaim],
    clock,
  })
  app.addHook('onClose', async () => await signIn.close())
  const answers = {
    schema: { response: { 200: Type.String(), 303: NoContent, '4xx': Type.String(), '5xx': Type.String() } },
  }

  const Begin = Type.Object({ next: Type.Optional(Type.String({ maxLength: 2_000 })) })
  app.get('/login/oidc', { schema: { ...answers.schema, querystring: Begin } }, async (request, reply) => {
    const pending = pendingCookie(request)
    try {
      const { url, cookie } = await signIn.begin({
        ...{ redirectUri: `${originOf(request)}/login/callback`, next: ownPath(request.query.next) },
        cookie: readPending(request, pending),
      })
      return reply
        .header('set-cookie', writePending(pending, cookie))
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

  // A HEAD request would use the code, and the browser's own request would then fail.
  app.get('/login/callback', { ...answers, exposeHeadRoute: false }, async (request, reply) => {
    const pending = pendingCookie(request)
    const cookie = readPending(request, pending)
    const query = request.url.slice(request.url.indexOf('?'))
    const rest = writePending(pending, signIn.rest(query, cookie))
    try {
      const { next, ...person } = await signIn.finish(query, cookie)
      const operator = operatorOf(person, access)
      setOperator(request, operator)
      await recordLogin(db, request, { actor: actorOf(request), subject: person.subject, role: operator.role })
      const session = consoleCookie(await sessions.begin(operator), request.protocol === 'https')
      page(reply, 200).header('set-cookie', [session, rest])
      return enteringPage(next)
    } catch (error) {
      request.log.warn({ err: error, address: request.ip }, 'operator sign-in refused')
      await takeThrottles(deps, operatorThrottles(request.ip))
      const isKnown = error instanceof NoGroupError
      page(reply, isKnown ? 403 : 401).header('set-cookie', rest)
      return loginPage({
        access,
        problem: isKnown ? 'Your account is not in a group that may use the console.' : FAILED,
      })
    }
  })
}

/** @throws NoGroupError */
function operatorOf({ subject, claims, userInfo }: Person, access: Config['operatorAccess']): Operator {
  const person: Record<string, unknown> = { ...userInfo, ...claims }
  const groups = person[access.groupsClaim]
  const role = roleIn(groupsIn(groups), access)
  const name = nameIn(person) ?? provenName(subject)
  if (role === undefined)
    throw new NoGroupError(
      `${name ?? 'a person'} is not in a group that may use the console: ${claimWords(access.groupsClaim, groups)}`,
    )
  if (name === undefined)
    throw new NoGroupError('the provider sent no usable email address and no usable name for the person')
  return { name, role, by: 'oidc' }
}

/**
 * What the provider said about groups, so that the log distinguishes a wrong claim from a wrong
 * group.
 */
function claimWords(claim: string, value: unknown): string {
  return value === undefined
    ? `the claim ${claim} is missing`
    : `the claim ${claim} is ${JSON.stringify(value).slice(0, CLAIM_CHARS_MAX)}`
}

function groupsIn(value: unknown): string[] {
  const groups: unknown[] = Array.isArray(value) ? value : [value]
  return groups.filter((group) => typeof group === 'string')
}

/**
 * The name of the person: the email address, unless the provider calls it unverified, or else the
 * name at the provider.
 */
function nameIn({ email, email_verified: verified = true, preferred_username: username }: Record<string, unknown>) {
  // The user info of some providers has texts: "true" and "false".
  const address = String(verified) === 'true' ? provenName(email) : undefined
  return address ?? provenName(username)
}

function page(reply: FastifyReply, status: number): FastifyReply {
  return reply.status(status).header('cache-control', 'no-store').headers(PAGE_HEADERS).type('text/html; charset=utf-8')
}

/**
 * The address of the console as the person's browser knows it. The provider accepts it only if it
 * is registered there.
 */
function originOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${host}`
}

function pendingCookie({ protocol }: Pick<FastifyRequest, 'protocol'>): PendingCookie {
  return { name: 'agw_console_sign_in', isSecure: protocol === 'https' }
}
