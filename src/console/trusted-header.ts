import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { trustProxies } from '../http/server/trusted-proxies.ts'
import { type Operator, provenName, roleIn } from '../operator/actor.ts'
import { isSameSecret } from './operator-session.ts'

/** The header in which the access proxy proves its identity. */
const SECRET_HEADER = 'x-trusted-header-secret'

/**
 * The person whom the access proxy in front of the console names as the sender of a request;
 * undefined if it names nobody.
 */
export type ReadTrustedHeader = (request: FastifyRequest) => Operator | undefined

/**
 * Makes the reader of an access proxy's headers. The headers count only if the socket's peer is in
 * TRUST_PROXY and the request carries the secret, because other machines in the proxy's network
 * could send the same headers. They are removed from all other requests.
 *
 * @throws GatewayError FORBIDDEN for a person whose groups give no access
 */
export function trustedHeaderReader({ http, operatorAccess }: Config): ReadTrustedHeader {
  const { trustedHeader } = operatorAccess
  if (trustedHeader === undefined) return () => undefined
  const isProxy = trustProxies(http.trustProxy)
  return ({ headers, raw }) => {
    const { [SECRET_HEADER]: secret, [trustedHeader.user]: user, [trustedHeader.groups]: groups } = headers
    for (const name of [SECRET_HEADER, trustedHeader.user, trustedHeader.groups]) delete headers[name]
    const isProven = typeof secret === 'string' && isSameSecret(secret, trustedHeader.secret)
    if (!isProven || !isProxy(raw.socket.remoteAddress)) return undefined
    const name = provenName(user)
    if (name === undefined) return undefined
    const role = roleIn(
      String(groups ?? '')
        .split(',')
        .map((group) => group.trim()),
      operatorAccess,
    )
    if (role === undefined)
      throw new GatewayError('FORBIDDEN', {
        message: 'This account may not use the console.',
        hint: 'Ask for membership in a group of OIDC_OPERATOR_GROUPS or OIDC_VIEWER_GROUPS',
      })
    return { name, role, by: 'proxy' }
  }
}
