import ipaddr from 'ipaddr.js'

const OWN_RANGES = ['loopback', 'private', 'linkLocal', 'uniqueLocal', 'unspecified']

/** IPv4 as it is, IPv6 by /56, which one subscriber commonly has; undefined for one's own machine and network. */
export function publicNetworkOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined
  const parsed = ipaddr.process(address)
  if (OWN_RANGES.includes(parsed.range())) return undefined
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${parsed.toByteArray().slice(0, 7).join('.')}/56`
}
