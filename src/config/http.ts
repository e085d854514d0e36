import { isIP } from 'node:net'
import { normalizedNetwork } from '../net/address-list.ts'
import { ConfigError, type EnvironmentReader, httpAddress } from './environment-reader.ts'

/** The addresses at which a process listens, and the public address. */
export interface HttpConfig {
  host: string
  port: number
  /** Address of the operator console. `host` does not change it. */
  opsHost: string
  opsPort: number
  /** Address of `/metrics`, `/healthz` and `/readyz` of one process; port 0 turns them off. */
  metricsHost: string
  metricsPort: number
  /** Public address, without a slash at the end. */
  baseUrl: string
  trustProxy: string[]
  /** Origins whose pages may make calls with a key (CORS). */
  corsOrigins: string[]
  tls: { certFile: string; keyFile: string } | undefined
  redirectPort: number | undefined
  /** Limits of one client address on a node; 0: no limit. */
  clients: {
    /** Connections at once. */
    connectionsMax: number
    /** Requests without an account per second. */
    anonymousPerSecond: number
  }
  /**
   * Where to report security problems: an address with its scheme. If undefined, there is no
   * security.txt.
   */
  securityContact: string | undefined
}

/** @throws ConfigError that names the variable that cannot be used */
export function readHttp(read: EnvironmentReader): HttpConfig {
  const port = read.integer('PORT', 3000, [0, 65_535])
  const certFile = read.text('TLS_CERT_FILE', '')
  const keyFile = read.text('TLS_KEY_FILE', '')
  if ((certFile === '') !== (keyFile === ''))
    throw new ConfigError('TLS_CERT_FILE and TLS_KEY_FILE must be set together')
  const redirectPort = read.integer('HTTP_REDIRECT_PORT', 0, [0, 65_535])
  const baseUrl = readBaseUrl(read, port)
  if ((certFile !== '' || redirectPort !== 0) && !baseUrl.startsWith('https:')) {
    throw new ConfigError('BASE_URL must be the public https: address when TLS_CERT_FILE or HTTP_REDIRECT_PORT is set')
  }
  return {
    host: read.text('HOST', LOOPBACK),
    port,
    opsHost: read.text('OPS_HOST', LOOPBACK),
    opsPort: readOpsPort(read, port),
    metricsHost: read.text('METRICS_HOST', LOOPBACK),
    metricsPort: read.integer('METRICS_PORT', 0, [0, 65_535]),
    baseUrl,
    trustProxy: readTrustProxy(read),
    corsOrigins: read.list('CORS_ORIGINS', ORIGIN, isOrigin),
    tls: certFile === '' ? undefined : { certFile, keyFile },
    redirectPort: redirectPort === 0 ? undefined : redirectPort,
    clients: {
      connectionsMax: read.integer('CLIENT_CONNECTIONS_MAX', 500, [0, 1_000_000]),
      anonymousPerSecond: read.integer('CLIENT_ANONYMOUS_PER_SECOND', 200, [0, 1_000_000]),
    },
    securityContact: readSecurityContact(read),
  }
}

const LOOPBACK = '127.0.0.1'

/**
 * The public address as clients spell it: host in lower case, no default port. A path is refused,
 * because links of the portal begin at the root.
 *
 * @throws ConfigError
 */
function readBaseUrl(read: EnvironmentReader, port: number): string {
  const { pathname, origin } = new URL(httpAddress('BASE_URL', read.text('BASE_URL', `http://localhost:${port}`)))
  if (pathname === '/') return origin
  throw new ConfigError(`BASE_URL must have no path: the gateway needs a host name of its own, such as ${origin}`)
}

/** @throws ConfigError that names the variable that the operator has set */
function readOpsPort(read: EnvironmentReader, port: number): number {
  if (port === 65_535 && read.text('OPS_PORT', '') === '')
    throw new ConfigError('PORT must be at most 65534 unless OPS_PORT is set: the console listens on the port after it')
  return read.integer('OPS_PORT', port === 0 ? 0 : port + 1, [0, 65_535])
}

/** @throws ConfigError unless it is an address that RFC 9116 allows */
function readSecurityContact(read: EnvironmentReader): string | undefined {
  const contact = read.text('SECURITY_CONTACT', '')
  if (contact === '') return undefined
  if (/^(mailto:|https:\/\/|tel:)\S+$/.test(contact)) return contact
  throw new ConfigError('SECURITY_CONTACT must be a mailto:, https: or tel: address')
}

/** Whether an address means this machine: `localhost`, a name below it, or a loopback address. */
export function isLocalAddress(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || /^(127(\.\d+){3}|\[::1\])$/.test(hostname)
}

/**
 * Whether only this machine can reach a listener. A name other than localhost counts as public,
 * because it may lead to any address.
 */
export function isLocalListener(host: string): boolean {
  return isLocalAddress(`http://${isIP(host) === 6 ? `[${host}]` : host}`)
}

const ORIGIN = 'an origin such as https://app.example.com, in lower case and without a slash at its end'

/**
 * Whether a text is an origin as browsers send it (RFC 6454, 6.1). `*` is refused, because any page
 * would match.
 */
function isOrigin(value: string): boolean {
  return /^https?:$/.test(URL.parse(value)?.protocol ?? '') && new URL(value).origin === value
}

/** @throws ConfigError for a range so wide that it has callers in it, not only proxies */
function readTrustProxy(read: EnvironmentReader): string[] {
  const items = read.list('TRUST_PROXY', PROXY, isAddressOrRange)
  const wide = items.find(isWide)
  if (wide === undefined) return items
  throw new ConfigError(
    `TRUST_PROXY must name only your proxies: callers from ${wide} could choose the address that the gateway sees`,
  )
}

const PROXY = 'an IP address, a range such as 10.0.0.0/8, or loopback, linklocal or uniquelocal'

/** An address, a CIDR, or one of the named ranges that Fastify's `trustProxy` knows. */
function isAddressOrRange(value: string): boolean {
  return ['loopback', 'linklocal', 'uniquelocal'].includes(value) || normalizedNetwork(value) !== undefined
}

/**
 * Whether a range is wider than the widest private ranges, 10.0.0.0/8 and fc00::/7. Ranges that
 * begin with `::` are refused too, because they contain IPv4 addresses in the form of IPv6.
 */
function isWide(value: string): boolean {
  const [address = '', length] = (normalizedNetwork(value) ?? '').split('/')
  return length !== undefined && (address === '::' || Number(length) < (isIP(address) === 4 ? 8 : 7))
}
