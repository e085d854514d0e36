import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'

const OWN_RANGES = ['loopback', 'private', 'linkLocal', 'uniqueLocal', 'unspecified']

/**
 * Prefix lengths by which networks are grouped, the widest first. A subscriber commonly has one
 * IPv4 address, or an IPv6 /64, /56 or /48.
 */
const PREFIXES = { ipv4: [24, 32], ipv6: [32, 48, 56, 64] } as const

/** A network that holds an address. */
export interface Network {
  /** Unique among all networks. */
  name: string
  kind: 'ipv4' | 'ipv6'
  prefix: number
}

/**
 * The client as which an address counts in throttles, in this process and in Redis. An IPv4 address
 * counts as itself, even if it arrives inside an IPv6 address. An IPv6 address counts as its /64,
 * because a subscriber has a whole /64. No throttle counts by an account's name alone, so nobody
 * can lock an owner out.
 */
export function clientOf(address: string): string {
  return clientsAround(address)[0]?.name ?? address
}

/**
 * The widest network that a stranger gets whole and for nothing: an IPv4 address, or an IPv6 /48,
 * which tunnels give away. It is for limits that all clients share, so that the 65,536 clients of a
 * /48 count as one client.
 */
export function subscriberOf(address: string): string {
  return clientsAround(address).at(-1)?.name ?? address
}

/** What a throttle counts for a client address, and how much it allows. */
interface ClientNetwork {
  name: string
  /** The network may take as much as this number of clients. */
  clients: number
}

/** All clients of an IPv6 /48 together may take as much as this number of clients. */
const CLIENTS_OF_SUBSCRIBER = 4

/**
 * The networks that count for an address: first the client, then its subscriber if a subscriber can
 * have several clients.
 */
export function clientsAround(address: string): ClientNetwork[] {
  if (!ipaddr.isValid(address)) return [{ name: address, clients: 1 }]
  const parsed = ipaddr.process(address)
  const ipv4 = parsed.kind() === 'ipv4' ? parsed : publicIpv4In(parsed as IPv6)
  if (ipv4) return [{ name: ipv4.toString(), clients: 1 }]
  const bytes = parsed.toByteArray()
  const client = { name: `${bytes.slice(0, 8).join('.')}/64`, clients: 1 }
  // Nobody gives away private networks, and such a network may have many honest clients.
  if (isOwn(parsed)) return [client]
  return [client, { name: `${bytes.slice(0, 6).join('.')}/48`, clients: CLIENTS_OF_SUBSCRIBER }]
}

/**
 * The narrowest network of a public address, in the form in which accounts store it: an IPv4
 * address, or the first eight bytes of an IPv6 address and `/64`. Undefined for addresses of this
 * machine and of private networks. If an IPv6 address stands for a public IPv4 address, it counts
 * as the IPv4 address: mapped (RFC 4291), translated (RFC 6145), NAT64 (RFC 6052), 6to4 (RFC 3056;
 * each IPv4 address has 65,536 of its subnets) and Teredo (RFC 4380).
 */
export function publicNetworkOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined
  const parsed = ipaddr.process(address)
  if (isOwn(parsed)) return undefined
  const ipv4 = parsed.kind() === 'ipv4' ? (parsed as IPv4) : publicIpv4In(parsed as IPv6)
  return ipv4 ? ipv4.toString() : `${parsed.toByteArray().slice(0, 8).join('.')}/64`
}

/**
 * The networks that hold a stored network, the widest first and the stored network last. It may be
 * an IPv6 /56, which earlier versions stored.
 */
export function networksAround(network: string): Network[] {
  const [bytes = '', narrowest] = network.split('/')
  const numbers = bytes.split('.')
  const kind = numbers.length > 4 ? 'ipv6' : 'ipv4'
  return PREFIXES[kind]
    .filter((prefix) => prefix <= Number(narrowest ?? 32))
    .map((prefix) => ({ name: `${kind}:${numbers.slice(0, prefix / 8).join('.')}/${prefix}`, kind, prefix }))
}

function isOwn(address: IPv4 | IPv6): boolean {
  return OWN_RANGES.includes(address.range())
}

/**
 * The IPv4 address inside an IPv6 address, if it is public. Anybody can write a private address
 * there, so such an address proves nothing.
 */
function publicIpv4In(address: IPv6): IPv4 | undefined {
  const bytes = embeddedIpv4(address)
  if (!bytes) return undefined
  const ipv4 = new ipaddr.IPv4(bytes)
  return isOwn(ipv4) ? undefined : ipv4
}

function embeddedIpv4(address: IPv6): number[] | undefined {
  const bytes = address.toByteArray()
  switch (address.range()) {
    case '6to4':
      return bytes.slice(2, 6)
    case 'rfc6145':
      return bytes.slice(12)
    case 'rfc6052':
      // 64:ff9b:1::/48 is for translators of a single network (RFC 8215). Each translator chooses
      // at which position the IPv4 address stands.
      return bytes[5] === 0 ? bytes.slice(12) : undefined
    case 'teredo':
      return bytes.slice(12).map((byte) => byte ^ 0xff)
    default:
      return undefined
  }
}
