import type { FastifyRequest } from 'fastify'
import { SESSION_MS } from '../accounts/session-token.ts'
import { readCookie, writeSessionCookie } from '../http/request/cookies.ts'
import { isOwnOrigin } from '../http/request/own-origin.ts'

/**
 * The portal's log-in is stored in a cookie that scripts cannot read, so that an injected script
 * cannot steal it, and that survives a reload. The cookie counts only if a page of this origin sent
 * the request on purpose: such requests have a header that a page of another origin can send only
 * after a preflight. No route that reads the cookie permits this header to another origin.
 */
const REQUEST_HEADER = 'x-portal-request'

/**
 * The prefix binds the cookie to this host and to HTTPS (RFC 6265bis, 4.1.3.2). Plain HTTP is only
 * for the local machine.
 */
function cookieName(baseUrl: string): string {
  return baseUrl.startsWith('https:') ? '__Host-agw_session' : 'agw_session'
}

/** `Set-Cookie` of a log-in; without a token, of a log-out. */
export function sessionCookie(token: string | undefined, baseUrl: string): string {
  return writeSessionCookie({
    name: cookieName(baseUrl),
    value: token,
    lifeSeconds: Math.floor(SESSION_MS / 1_000),
    isSecure: baseUrl.startsWith('https:'),
  })
}

/** The token in the cookie of any request; undefined if there is none. */
export function readSessionCookie({ headers }: Pick<FastifyRequest, 'headers'>, baseUrl: string): string | undefined {
  const token = readCookie(headers.cookie, cookieName(baseUrl))
  return token !== undefined && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token) ? token : undefined
}

/**
 * Whether a page of this origin sent the request: it has the header, and `Origin` names no other
 * origin.
 */
export function isPortalRequest(request: FastifyRequest, baseUrl: string): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (request.headers[REQUEST_HEADER] === undefined) return false
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || isOwnOrigin(origin, request, baseUrl)
}

/**
 * Makes the session in the cookie count for the portal's own requests, in place of the bearer token
 * that other clients send.
 */
export function acceptPortalSession(request: FastifyRequest, baseUrl: string): void {
  const { headers } = request
  if (headers.authorization !== undefined || headers['x-api-key'] !== undefined) return
  if (!isPortalRequest(request, baseUrl)) return
  const token = readSessionCookie(request, baseUrl)
  if (token !== undefined) headers.authorization = `Bearer ${token}`
}
