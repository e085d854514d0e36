import { parseCookie, stringifySetCookie } from 'cookie'

export interface SessionCookie {
  name: string
  /** Undefined ends the session. */
  value: string | undefined
  lifeSeconds: number
  /** Sent over HTTPS alone. */
  isSecure: boolean
}

/** `Set-Cookie` of a log-in: no script reads the cookie, and no page of another site sends it. */
export function writeSessionCookie(cookie: SessionCookie): string {
  return writeCookie({ ...cookie, path: '/', sameSite: 'strict' })
}

/**
 * `Set-Cookie` of what no script reads. Lax: it comes with a person whom another site sends here.
 */
export function writeCookie({
  lifeSeconds,
  isSecure,
  value,
  ...cookie
}: SessionCookie & { path: string; sameSite: 'strict' | 'lax' }): string {
  const maxAge = value === undefined ? 0 : lifeSeconds
  return stringifySetCookie({ ...cookie, value: value ?? '', maxAge, httpOnly: true, secure: isSecure })
}

/** The value of a cookie in a `Cookie` header; undefined if it is not there. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[name]
}
