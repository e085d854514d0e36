import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { sendError } from '../http/answer/error-answer.ts'
import { readBearer } from '../http/request/bearer.ts'
import { readCookie } from '../http/request/cookies.ts'
import { type Operator, operatorName, roleOf, setOperator, TOKEN_OPERATOR } from '../operator/actor.ts'
import type { Assets } from '../pages/assets.ts'
import { operatorThrottles, type ThrottleDeps, takeThrottles } from '../throttles/throttle.ts'
import { isForPerson, sendFailure } from './failure-page.ts'
import { loginPage, PAGE_HEADERS } from './login-page.ts'
import { COOKIE, isSameSecret, type OperatorSessions } from './operator-session.ts'
import type { ReadTrustedHeader } from './trusted-header.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

const HINT = 'Send Authorization: Bearer with the value of OPERATOR_TOKEN; API keys and sessions are not accepted here'

/**
 * How a request was authenticated as an operator's. A browser also sends its cookie, and the access
 * proxy its headers, with requests that pages of other sites cause.
 */
export type OperatorProof = 'bearer' | 'cookie' | 'proxy'

/** What the guard needs. */
export interface GuardDeps extends ThrottleDeps {
  config: Config
  sessions: OperatorSessions
  readTrustedHeader: ReadTrustedHeader
  assets: Assets
}

const proofs = new WeakMap<FastifyRequest, OperatorProof>()

/**
 * Guards every route of a scope: a request needs the operator token as a bearer token, the cookie
 * of a log-in, or the headers of the access proxy. Requests from pages of other sites are refused,
 * whatever they carry. A person who opens a page without a session gets the log-in form.
 */
export function guardOperator(scope: FastifyInstance, deps: GuardDeps): void {
  scope.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    try {
      const { proof, operator } = await proveOperator(deps, request)
      refuseForeignOrigin(request, proof)
      refuseViewer(request, operator)
      proofs.set(request, proof)
      setOperator(request, operator)
    } catch (error) {
      // Answered here, because a plugin of the scope may have its own error handler.
      if (!isForPerson(request)) return sendError(reply, error, deps.config.http.baseUrl)
      const isUnknown = error instanceof GatewayError && error.status === 401
      return isUnknown && request.method === 'GET'
        ? showLogin(reply, deps.config.operatorAccess)
        : sendFailure(reply, error, deps.assets)
    }
  })
  // Set here for all pages, so that a new page needs no code. The style sheet then hides all
  // controls that change something from viewers, even in parts that scripts add.
  scope.addHook('onSend', async (request, _reply, payload) =>
    roleOf(request) === 'viewer' && typeof payload === 'string'
      ? payload.replace('\n<body>\n', '\n<body data-role="viewer">\n')
      : payload,
  )
}

/**
 * Whether a request that the guard accepted would still be accepted, because the session may end
 * during a long answer.
 */
export async function isStillOperator(request: FastifyRequest, sessions: OperatorSessions): Promise<boolean> {
  // The token and the headers of a proxy were proven by the request itself, and do not end.
  if (proofs.get(request) !== 'cookie') return true
  const id = readCookie(request.headers.cookie, COOKIE)
  return id !== undefined && (await sessions.find(id)) !== undefined
}

async function proveOperator(
  deps: GuardDeps,
  request: FastifyRequest,
): Promise<{ proof: OperatorProof; operator: Operator }> {
  const { config, sessions, readTrustedHeader } = deps
  const named = readTrustedHeader(request)
  const bearer = readToken(request)
  if (bearer !== undefined) {
    // Compared before the throttle, so that the correct token always works, however often others at
    // this address guessed.
    if (isSameSecret(bearer, config.secrets.operatorToken)) return { proof: 'bearer', operator: TOKEN_OPERATOR }
    await takeThrottles(deps, operatorThrottles(request.ip))
    throw new GatewayError('INVALID_TOKEN', { message: 'The operator token is not valid.', hint: HINT })
  }
  if (named) return { proof: 'proxy', operator: named }
  const id = readCookie(request.headers.cookie, COOKIE)
  const operator = id === undefined ? undefined : await sessions.find(id)
  if (operator) return { proof: 'cookie', operator }
  throw new GatewayError('AUTH_REQUIRED', { message: 'The operator token is required.', hint: HINT })
}

/**
 * Our own words for a malformed header too, because the words of the public port speak of API keys.
 */
function readToken({ headers }: FastifyRequest): string | undefined {
  try {
    return readBearer(headers)
  } catch (cause) {
    const message = 'The Authorization header must be the word Bearer, a space, and a token.'
    throw new GatewayError('INVALID_TOKEN', { message, hint: HINT, cause })
  }
}

/**
 * `Sec-Fetch-Site` says where a request comes from, and pages cannot forge it. If a browser does
 * not send it, `Origin` is used. A change without the bearer token needs one of the two headers;
 * fails closed.
 */
export function refuseForeignOrigin(request: FastifyRequest, proof: OperatorProof): void {
  const { headers, method } = request
  const site = headers['sec-fetch-site']
  const origin = headers.origin
  const isSafe = SAFE_METHODS.has(method)
  const isNavigation = isSafe && headers['sec-fetch-mode'] === 'navigate'
  // With a strict referrer policy, a page's own form has the origin `null`. If the browser sends
  // `Sec-Fetch-Site`, that counts.
  const isForeign =
    site === undefined
      ? origin !== undefined && !isOwnOrigin(origin, headers.host)
      : site !== 'same-origin' && site !== 'none' && !isNavigation
  const isProven = site === 'same-origin' || (site === undefined && origin !== undefined)
  if (isForeign || (proof !== 'bearer' && !isSafe && !isProven)) {
    throw new GatewayError('FORBIDDEN', {
      message: 'Only the console itself may send this request.',
      hint: 'Send the request from a page of the console',
    })
  }
}

/** A viewer may only read. The HTTP method decides, so that a new route needs no code. */
function refuseViewer({ method }: FastifyRequest, { role }: Operator): void {
  if (role === 'operator' || SAFE_METHODS.has(method)) return
  throw new GatewayError('FORBIDDEN', {
    message: 'Members of OIDC_VIEWER_GROUPS may read the console, but may not change anything.',
    hint: 'Ask for membership in a group of OIDC_OPERATOR_GROUPS',
  })
}

function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host
}

function showLogin(reply: FastifyReply, access: Config['operatorAccess']): FastifyReply {
  return reply
    .status(401)
    .headers(PAGE_HEADERS)
    .type('text/html; charset=utf-8')
    .send(loginPage({ access, next: reply.request.url, name: operatorName(reply.request) }))
}
