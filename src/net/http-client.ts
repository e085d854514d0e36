import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { lookup } from './lookup.ts'
import { isPublicAddress } from './reachable.ts'

const CONNECT_TIMEOUT_MS = 3_000

/** An address that an upstream's name must not lead to. */
export class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS'
}

export interface HttpClientOptions {
  /** Undefined: as many as there are requests at once. */
  connections: number | undefined
  allowPrivate: boolean
  /** Longest look-up and handshakes of a connection, milliseconds. */
  connectTimeoutMs?: number
}

/**
 * Opens the connections to one upstream, which are kept alive. Names are resolved here and the
 * answer is checked and used as it is, so that a name that points into our own network (DNS
 * rebinding) leads nowhere.
 */
export function openHttpClient(options: HttpClientOptions): Dispatcher {
  const { connectTimeoutMs: timeout = CONNECT_TIMEOUT_MS } = options
  return new Agent({
    ...(options.connections === undefined ? {} : { connections: options.connections }),
    pipelining: 1,
    // If undici speaks HTTP/2, it repeats refused requests without a permit, and one dead
    // connection fails every request.
    allowH2: false,
    keepAliveTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: options.allowPrivate ? { timeout, lookup } : publicConnector(timeout),
  })
}

function publicConnector(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout, lookup: publicLookup, allowH2: false })
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    // If the host is an address, nothing looks it up, so it is checked here.
    if (isIP(host) === 0 || isPublicAddress(host)) connect(options, callback)
    else callback(new BlockedAddressError(`${host} is not public`), null)
  }
}

const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, '')
    const addresses = typeof found === 'string' ? [] : found
    const blocked = addresses.find(({ address }) => !isPublicAddress(address))
    if (blocked) return callback(new BlockedAddressError(`${hostname} leads to ${blocked.address}`), '')
    if (options.all) return callback(null, addresses)
    const [first] = addresses
    return callback(null, first?.address ?? '', first?.family)
  })
}
