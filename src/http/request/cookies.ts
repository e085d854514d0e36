import { parseCookie, stringifySetCookie } from 'cookie'

export interface SessionCookie {
  name: string
  /** Undefined deletes the cookie. */
  value: string | undefined
  lifeSeconds: number
  /** Whether browsers send it only over HTTPS. */
  isSecure: boolean
}

/**
 * `Set-Cookie` of a log-in. Scripts cannot read the cookie, and requests from pages of other sites
 * do not carry it.
 */
export function writeSessionCookie(cookie: SessionCookie): string {
  return writeCookie({ ...cookie, path: '/', sameSite: 'strict' })
}

/**
 * `Set-Cookie` of a cookie that scripts cannot read. With Lax, browsers send it when another site
 * leads the person here.
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

/** The value of a cookie in a `Cookie` header; undefined if the header lacks it. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[name]
}
