import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { IsProxy } from './trusted-proxies.ts'

/**
 * The address of clients that a trusted proxy does not name ("unknown", a made-up name, or not an
 * address), and of connections that have ended. It is the dummy address of RFC 7600, 4.8, which no
 * host has. All these clients count as one client of a public network.
 */
export const UNNAMED_CLIENT = '192.0.0.8'

/** Caches the address of a request, so that it is still known after the connection has ended. */
const CLIENT_ADDRESS = Symbol('client address')
type Named = IncomingMessage & { [CLIENT_ADDRESS]?: string }

/**
 * Sets the `ip` and `host` that the client of a request used. `X-Forwarded-For` and
 * `X-Forwarded-Host` of trusted proxies count; `Forwarded` (RFC 7239) is ignored. `ip` is always an
 * address in its shortest form, without port, brackets or zone, and never an IPv4 address in the
 * form of IPv6.
 */
export function readForwarded(app: FastifyInstance, isProxy: IsProxy): void {
  app.decorateRequest('ip', {
    getter(this: FastifyRequest) {
      const raw: Named = this.raw
      raw[CLIENT_ADDRESS] ??= clientAddress(raw, isProxy)
      return raw[CLIENT_ADDRESS]
    },
  })
  app.decorateRequest('host', {
    getter(this: FastifyRequest) {
      const { headers, socket } = this.raw
      const forwarded = headers['x-forwarded-host']
      // The last value is from the nearest proxy.
      if (forwarded && isProxy(socket.remoteAddress)) return String(forwarded).split(',').at(-1)?.trim() ?? ''
      return headers.host ?? ''
    },
  })
}

/**
 * The address that the outermost trusted proxy saw. Everything before it in the header may be made
 * up.
 */
export function clientAddress(
  { headers, socket }: { headers: IncomingHttpHeaders; socket: { remoteAddress?: string | undefined } },
  isProxy: IsProxy,
): string {
  let address = plainAddress(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined || !isProxy(address)) return address ?? UNNAMED_CLIENT
  for (const written of String(forwarded).split(',').reverse()) {
    if (written.trim() === '') continue
    address = plainAddress(written)
    if (!isProxy(address)) break
  }
  return address ?? UNNAMED_CLIENT
}

/**
 * The address in any notation that proxies write: with a port, in brackets or quotation marks, with
 * a zone, or IPv4 in the form of IPv6. Undefined if the text has no address.
 */
export function plainAddress(written: string): string | undefined {
  const text = written.trim().replace(/^"(.*)"$/, '$1')
  if (isIP(text) === 4) return text
  // A port may also be empty (RFC 3986, 3.2.3), or a made-up name with an underscore in front (RFC
  // 7239, 6.2).
  const withoutPort = text.replace(/:(\d{0,5}|_[\w.-]+)$/, '')
  for (const candidate of [text, withoutPort]) {
    const [address = ''] = candidate.replace(/^\[(.*)\]$/, '$1').split('%')
    if (isIP(address) !== 0) return ipaddr.process(address).toString()
  }
  return undefined
}
