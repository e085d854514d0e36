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
export function writeSessionCookie({ name, value, lifeSeconds, isSecure }: SessionCookie): string {
  const maxAge = value === undefined ? 0 : lifeSeconds
  return stringifySetCookie({
    name,
    value: value ?? '',
    path: '/',
    maxAge,
    httpOnly: true,
    sameSite: 'strict',
    secure: isSecure,
  })
}

/** The value of a cookie in a `Cookie` header; undefined if it is not there. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[name]
}
