import ipaddr from 'ipaddr.js'

/** Ranges of one's own machine and network, which no stranger can have. */
const OWN_RANGES = ['loopback', 'private', 'linkLocal', 'uniqueLocal', 'unspecified']

/**
 * The network that a sign-up is counted for: an IPv4 address as it is, an IPv6 one by its /56, of which one subscriber
 * commonly has all; undefined for addresses of one's own machine and network.
 */
export function publicNetworkOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined
  const parsed = ipaddr.process(address)
  if (OWN_RANGES.includes(parsed.range())) return undefined
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${parsed.toByteArray().slice(0, 7).join('.')}/56`
}
