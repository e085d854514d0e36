import type { FastifyRequest } from 'fastify'
import { IncomingMessage } from '../node-http.ts'

/** What the library is given in place of what the client sent. */
export interface Replacement {
  /** Path and query. */
  url?: string
  /** The body, which was counted while it arrived. Absent: the request has none. */
  body?: Buffer
}

/**
 * A request as the library reads it. Whatever host it names, every address in an answer is made
 * from `BASE_URL`, and the client is who our own proxies say.
 */
export function requestForLibrary(
  request: Pick<FastifyRequest, 'raw' | 'ip' | 'url'>,
  baseUrl: string,
  { url = request.url, body = Buffer.alloc(0) }: Replacement,
): InstanceType<typeof IncomingMessage> {
  const { host, protocol } = new URL(baseUrl)
  const { raw, ip } = request
  const { forwarded, 'transfer-encoding': coding, 'content-type': type, ...headers } = raw.headers
  const replaced = new IncomingMessage(raw.socket)
  const { method, httpVersion, httpVersionMajor, httpVersionMinor, rawHeaders } = raw
  Object.assign(replaced, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, rawHeaders, complete: true })
  replaced.headers = {
    ...headers,
    host,
    'x-forwarded-host': host,
    'x-forwarded-proto': protocol.slice(0, -1),
    'x-forwarded-for': ip,
    // A charset has no effect on any type that these routes take; the library would decode the body
    // by it.
    ...(type !== undefined && { 'content-type': type.split(';')[0] }),
    ...(raw.method === 'POST' && { 'content-length': String(body.length) }),
  }
  replaced.push(body)
  replaced.push(null)
  return replaced
}
