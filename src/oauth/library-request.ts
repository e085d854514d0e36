import type { FastifyRequest } from 'fastify'
import { IncomingMessage } from '../node-http.ts'

/** What the library reads in place of what the client sent. */
export interface Replacement {
  /** Path and query. */
  url?: string
  /** The body, whose size was checked while it arrived. Absent: the request has no body. */
  body?: Buffer
}

/**
 * The request that the library reads. Whatever host the client named, every address in an answer
 * starts with `BASE_URL`, and the client address is the address that our own proxies report.
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
    // A charset has no meaning for the types that these routes accept, but the library would decode
    // the body with it.
    ...(type !== undefined && { 'content-type': type.split(';')[0] }),
    ...(raw.method === 'POST' && { 'content-length': String(body.length) }),
  }
  replaced.push(body)
  replaced.push(null)
  return replaced
}
