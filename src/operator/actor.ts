import type { FastifyRequest } from 'fastify'
import { readCookie } from '../http/cookies.ts'

/** The cookie with the name that an operator gave at the log-in of the console. */
export const NAME_COOKIE = 'agw_operator'

/** Who does it, for the audit log: the name an operator goes by, which nobody proves, and the address. */
export function actorOf(request: Pick<FastifyRequest, 'headers' | 'ip'>): string {
  const named = request.headers['x-operator']
  const name = typeof named === 'string' ? named : operatorName(request)
  return `${isOperatorName(name) ? name : 'operator'} (${request.ip})`
}

/** The name of the console's log-in; empty for none. */
export function operatorName({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const name = readCookie(headers.cookie, NAME_COOKIE) ?? ''
  return isOperatorName(name) ? name : ''
}

/** Whether the audit log takes a name: nothing in it is read as anything but a name. */
export function isOperatorName(name: string): boolean {
  return /^[\w.@ -]{1,64}$/.test(name)
}
