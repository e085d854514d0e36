import type { FastifyRequest } from 'fastify'
import { readCookie, writeCookie } from '../http/request/cookies.ts'

/** How long a person may take to sign in at the provider, seconds. */
export const SIGN_IN_SECONDS = 600

/**
 * The cookie of sign-ins in progress. Each port has its own cookie name, because browsers share
 * cookies between ports.
 */
export interface PendingCookie {
  name: 'agw_console_sign_in' | 'agw_sign_in'
  isSecure: boolean
}

/**
 * The `Set-Cookie` header for sign-ins in progress; without a value it deletes the cookie. The
 * cookie is Lax, not Strict, because another site sends the person back. Over HTTPS its name has
 * the prefix that binds it to this host (RFC 6265bis, 4.1.3.2), so that another host of the domain
 * cannot put somebody else's sign-in into the browser.
 */
export function writePending({ name, isSecure }: PendingCookie, value: string | undefined): string {
  return writeCookie({
    ...{ name: fullName(name, isSecure), value, lifeSeconds: SIGN_IN_SECONDS },
    ...{ path: '/', sameSite: 'lax', isSecure },
  })
}

/** Empty when there is none. */
export function readPending(request: Pick<FastifyRequest, 'headers'>, { name, isSecure }: PendingCookie): string {
  return readCookie(request.headers.cookie, fullName(name, isSecure)) ?? ''
}

function fullName(name: string, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name
}
