import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { loginPage, PAGE_HEADERS } from './login-page.ts'
import { refuseForeignOrigin } from './operator-guard.ts'
import { createSession, isSameSecret, sessionCookie } from './operator-session.ts'
import type { Throttle } from './throttle.ts'

/** Log-in and log-out; the only routes of the console that need no token. */
export async function loginRoutes(app: FastifyInstance, config: Config, throttle: Throttle): Promise<void> {
  const { operatorToken } = config.secrets
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )

  const login = {
    schema: {
      body: Type.Object({ token: Type.String({ maxLength: 1_000 }) }),
      response: { 303: Type.Null(), '4xx': Type.String() },
    },
  }
  app.post<{ Body: { token: string } }>('/login', login, async (request, reply) => {
    // A page elsewhere must not log a person in without their knowing it.
    refuseForeignOrigin(request, 'cookie')
    reply.header('cache-control', 'no-store').headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    try {
      throttle.check(request.ip)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const seconds = Math.ceil((error.details.retryAfterMs ?? 1_000) / 1_000)
      reply.status(429).header('retry-after', seconds)
      return loginPage(`Too many attempts. Try again in ${seconds} seconds.`)
    }
    if (!isSameSecret(request.body.token, operatorToken)) {
      throttle.fail(request.ip)
      request.log.warn({ address: request.ip }, 'operator log-in refused')
      reply.status(401)
      return loginPage('That is not the operator token.')
    }
    request.log.info({ address: request.ip }, 'operator logged in')
    reply.header('set-cookie', sessionCookie(createSession(operatorToken, Date.now()), isOnTls(request)))
    return reply.redirect('/', 303)
  })

  app.post('/logout', { schema: { response: { 303: Type.Null() } } }, async (request, reply) => {
    refuseForeignOrigin(request, 'cookie')
    reply.header('set-cookie', sessionCookie('', isOnTls(request)))
    return reply.redirect('/', 303)
  })
}

/**
 * Whether the browser came by TLS, which ends before us if at all: its own word for it is the form's `Origin`. A cookie
 * marked Secure would be dropped by one that came without, and nobody could log in.
 */
function isOnTls({ headers, protocol }: FastifyRequest): boolean {
  return (headers.origin ?? `${protocol}:`).startsWith('https:')
}
