import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { readBearer } from '../http/bearer.ts'
import { sendError } from '../http/error-answer.ts'
import { loginPage, PAGE_HEADERS } from './login-page.ts'
import { isSameSecret, isValidSession, readCookie } from './operator-session.ts'
import type { Throttle } from './throttle.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** How an operator proved to be one. */
export type OperatorProof = 'bearer' | 'cookie'

const proofs = new WeakMap<FastifyRequest, OperatorProof>()

/**
 * Guards every route of a scope: the operator token as bearer, or the cookie of a log-in. Another site's page gets
 * nothing, whatever it sends. A person who opens a page without a session is shown the log-in form.
 */
export function guardOperator(scope: FastifyInstance, config: Config, throttle: Throttle): void {
  scope.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    try {
      const proof = proveOperator(config.secrets.operatorToken, request, throttle)
      refuseForeignOrigin(request, proof)
      proofs.set(request, proof)
    } catch (error) {
      const isUnknown = error instanceof GatewayError && error.status === 401
      if (isPageView(request) && isUnknown) return showLogin(reply)
      // Answered here: a plugin of the scope may have an error handler of its own.
      return sendError(request, reply, error, config.http.baseUrl)
    }
  })
}

/** Refuses what changes something unless it comes from the console's own pages: a token alone is not enough. */
export function guardWritesWithCookie(scope: FastifyInstance, { http }: Config): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (SAFE_METHODS.has(request.method) || operatorProof(request) === 'cookie') return
    const error = new GatewayError('FORBIDDEN', { message: 'Only the console itself may do this.' })
    return sendError(request, reply, error, http.baseUrl)
  })
}

/** How the operator of a request on a guarded route proved to be one. */
export function operatorProof(request: FastifyRequest): OperatorProof {
  const proof = proofs.get(request)
  if (!proof) throw new Error('the route is not guarded')
  return proof
}

function proveOperator(operatorToken: string, request: FastifyRequest, throttle: Throttle): OperatorProof {
  const bearer = readBearer(request.headers)
  if (bearer !== undefined) {
    throttle.check(request.ip)
    if (isSameSecret(bearer, operatorToken)) return 'bearer'
    throttle.fail(request.ip)
    throw new GatewayError('INVALID_TOKEN', { message: 'The operator token is not valid.' })
  }
  const cookie = readCookie(request.headers.cookie)
  if (cookie !== undefined && isValidSession(operatorToken, cookie, Date.now())) return 'cookie'
  throw new GatewayError('AUTH_REQUIRED', { message: 'The operator token is required.' })
}

/**
 * `Sec-Fetch-Site` says where a request comes from, and no page can forge it; `Origin` where a browser does not send
 * it. A change made with the cookie needs one of them: fails closed.
 */
export function refuseForeignOrigin(request: FastifyRequest, proof: OperatorProof): void {
  const { headers, method } = request
  const site = headers['sec-fetch-site']
  const origin = headers.origin
  const isSafe = SAFE_METHODS.has(method)
  const isNavigation = isSafe && headers['sec-fetch-mode'] === 'navigate'
  // Under a strict referrer policy a page's own form has the origin `null`: where the browser says more, that counts.
  const isForeign =
    site === undefined
      ? origin !== undefined && !isOwnOrigin(origin, headers.host)
      : site !== 'same-origin' && site !== 'none' && !isNavigation
  const isProven = site === 'same-origin' || (site === undefined && origin !== undefined)
  if (isForeign || (proof === 'cookie' && !isSafe && !isProven)) {
    throw new GatewayError('FORBIDDEN', { message: 'This may be asked by the console itself alone.' })
  }
}

function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host
}

function isPageView({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').includes('text/html')
}

function showLogin(reply: FastifyReply): FastifyReply {
  return reply.status(401).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(loginPage())
}
