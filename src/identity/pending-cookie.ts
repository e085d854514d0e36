import type { FastifyRequest } from 'fastify'
import { readCookie, writeCookie } from '../http/request/cookies.ts'

/** How long a person may take at the provider, seconds. */
export const SIGN_IN_SECONDS = 600

/**
 * Whose sign-in is under way. Each port has a cookie of its own, because browsers share cookies
 * between ports.
 */
export interface PendingCookie {
  name: 'agw_console_sign_in' | 'agw_sign_in'
  isSecure: boolean
}

/**
 * `Set-Cookie` of sign-ins under way; of their end without a value. It comes back with a person
 * whom another site sends: Lax, not Strict. Over HTTPS its prefix binds it to this host (RFC
 * 6265bis, 4.1.3.2), so that no other host of the domain puts a sign-in of somebody else into the
 * browser.
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
