import type { FastifyRequest } from 'fastify'

/** Who does it, for the audit log: the name an operator goes by, which nobody proves, and the address. */
export function actorOf({ headers, ip }: FastifyRequest): string {
  const name = headers['x-operator']
  return `${typeof name === 'string' && /^[\w.@ -]{1,64}$/.test(name) ? name : 'operator'} (${ip})`
}
