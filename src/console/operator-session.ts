import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** The cookie of the console. It holds no secret but proves that its bearer knew the token when it was made. */
export const COOKIE = 'agw_console'

/** How long a log-in lasts, seconds. */
const SESSION_SECONDS = 12 * 3_600

/** Whether two texts are equal, in a time that tells nothing of where they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'operator').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** A session as the cookie's value. It ends by itself, and with the token it was made under. */
export function createSession(operatorToken: string, now: number): string {
  const body = `${now + SESSION_SECONDS * 1_000}.${randomBytes(12).toString('base64url')}`
  return `${body}.${sign(operatorToken, body)}`
}

export function isValidSession(operatorToken: string, value: string, now: number): boolean {
  const [endsAt = '', nonce = '', signature = ''] = value.split('.')
  return isSameSecret(signature, sign(operatorToken, `${endsAt}.${nonce}`)) && Number(endsAt) > now
}

function sign(operatorToken: string, body: string): string {
  return createHmac('sha256', operatorToken).update(`console session ${body}`).digest('base64url')
}

/** `Set-Cookie` of a session; of the end of one when the value is empty. */
export function sessionCookie(value: string, isSecure: boolean): string {
  const life = value === '' ? 0 : SESSION_SECONDS
  return `${COOKIE}=${value}; Path=/; Max-Age=${life}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** The session's value in a `Cookie` header. */
export function readCookie(header: string | undefined): string | undefined {
  for (const pair of (header ?? '').split(';')) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === COOKIE) return value
  }
  return undefined
}
