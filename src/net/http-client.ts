import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { lookup } from './lookup.ts'
import { isPublicAddress } from './reachable.ts'

const CONNECT_TIMEOUT_MS = 3_000

/** The name of an upstream leads to an address that must not be reached. */
export class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS'
}

export interface HttpClientOptions {
  /** Most connections. Undefined: as many as there are requests at once. */
  connections: number | undefined
  allowPrivate: boolean
  /** Longest time for look-up and handshakes of a connection, milliseconds. */
  connectTimeoutMs?: number
}

/**
 * Opens the connections to one upstream and keeps them alive. Names are resolved here, and the
 * connection goes to exactly the address that was checked. So a name that is changed to point into
 * our own network (DNS rebinding) leads nowhere.
 */
export function openHttpClient(options: HttpClientOptions): Dispatcher {
  const { connectTimeoutMs: timeout = CONNECT_TIMEOUT_MS } = options
  return new Agent({
    ...(options.connections === undefined ? {} : { connections: options.connections }),
    pipelining: 1,
    // With HTTP/2, undici repeats refused requests without a permit, and one dead connection fails
    // every request.
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
    // If the host is an IP address, there is no look-up, so the address is checked here.
    if (isIP(host) === 0 || isPublicAddress(host)) connect(options, callback)
    else callback(new BlockedAddressError(`${host} is not public`), null)
  }
}

const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, '')
    const addresses = typeof found === 'string' ? [] : found
    const blocked = addresses.find(({ address }) => !isPublicAddress(address))
    if (blocked) return callback(new BlockedAddressError(`${hostname} resolves to ${blocked.address}`), '')
    if (options.all) return callback(null, addresses)
    const [first] = addresses
    return callback(null, first?.address ?? '', first?.family)
  })
}
