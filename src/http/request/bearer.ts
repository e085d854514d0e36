import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../../errors.ts'

/**
 * The token of `Authorization: Bearer …` (RFC 6750, 2.1: at least one blank in between); undefined
 * without this header.
 *
 * @throws GatewayError INVALID_TOKEN if the header has another scheme or form
 */
export function readBearer(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization === undefined) return undefined
  const match = /^bearer +([\w.~+/-]+=*)$/i.exec(headers.authorization)
  if (!match?.[1] || match[1].length > 4_096) {
    throw new GatewayError('INVALID_TOKEN', {
      message: 'The Authorization header must be the word Bearer, a space, and a token or API key.',
      hint: 'Send Authorization: Bearer <token or API key>',
    })
  }
  return match[1]
}
