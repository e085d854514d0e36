import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { trustProxies } from '../http/server/trusted-proxies.ts'
import { type Operator, provenName, roleIn } from '../operator/actor.ts'
import { isSameSecret } from './operator-session.ts'

/** In which header the access proxy proves that it is the proxy. */
const SECRET_HEADER = 'x-trusted-header-secret'

/**
 * Whom the access proxy in front of the console names as the sender of a request; undefined for a
 * request of nobody's.
 */
export type ReadTrustedHeader = (request: FastifyRequest) => Operator | undefined

/**
 * Makes the reader of the headers of an access proxy. They count only when the peer of the socket
 * is in TRUST_PROXY and the request carries the secret, because others in the proxy's network can
 * send headers as well. From any other request they are taken away.
 *
 * @throws GatewayError FORBIDDEN for a person in no group that counts
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
        hint: 'Ask for a group of OIDC_OPERATOR_GROUPS or OIDC_VIEWER_GROUPS',
      })
    return { name, role, by: 'proxy' }
  }
}
