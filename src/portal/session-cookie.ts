import type { FastifyRequest } from 'fastify'
import { SESSION_MS } from '../accounts/session-token.ts'
import { readCookie, writeSessionCookie } from '../http/request/cookies.ts'
import { isOwnOrigin } from '../http/request/own-origin.ts'

/**
 * The portal's log-in lives in a cookie that no script can read, so that a script that should not
 * be there cannot carry it away, and that survives a reload. It counts only for requests that a
 * page of this origin sends on purpose: they bear a header that a page of another origin cannot
 * send without asking, and nobody is ever allowed on asking.
 */
const REQUEST_HEADER = 'x-portal-request'

/**
 * The prefix binds the cookie to this host and to HTTPS (RFC 6265bis, 4.1.3.2); plain HTTP is for
 * one's own machine.
 */
function cookieName(baseUrl: string): string {
  return baseUrl.startsWith('https:') ? '__Host-agw_session' : 'agw_session'
}

/** `Set-Cookie` of a log-in; of a log-out without a token. */
export function sessionCookie(token: string | undefined, baseUrl: string): string {
  return writeSessionCookie({
    name: cookieName(baseUrl),
    value: token,
    lifeSeconds: Math.floor(SESSION_MS / 1_000),
    isSecure: baseUrl.startsWith('https:'),
  })
}

/** The token in the cookie, whoever sent it; undefined if there is none. */
export function readSessionCookie({ headers }: Pick<FastifyRequest, 'headers'>, baseUrl: string): string | undefined {
  const token = readCookie(headers.cookie, cookieName(baseUrl))
  return token !== undefined && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token) ? token : undefined
}

/**
 * Whether a page of this origin sent the request: the header is there, and the browser names no
 * other origin.
 */
export function isPortalRequest(request: FastifyRequest, baseUrl: string): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (request.headers[REQUEST_HEADER] === undefined) return false
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || isOwnOrigin(origin, request, baseUrl)
}

/**
 * Lets the portal's own requests bear the cookie's session, in place of the token that other
 * clients bear.
 */
export function acceptPortalSession(request: FastifyRequest, baseUrl: string): void {
  const { headers } = request
  if (headers.authorization !== undefined || headers['x-api-key'] !== undefined) return
  if (!isPortalRequest(request, baseUrl)) return
  const token = readSessionCookie(request, baseUrl)
  if (token !== undefined) headers.authorization = `Bearer ${token}`
}
