import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether an address is on the public Internet. It is not if it is private, local, reserved, or
 * wrapped around such an address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL_UNICAST)
}

/** All addresses assigned for use on the Internet (RFC 4291, 2.4, and IANA's registry). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * A label may have an underscore: name servers resolve such names, and names of containers have
 * them.
 */
const LABEL = /^[\w-]{1,63}$/

/** Longest name that a question to a name server can hold (RFC 1035, 2.3.4). */
const NAME_LENGTH_MAX = 253

/** Why a connection to this address can never work; undefined if it may work. */
export function unreachableBecause({ hostname, port }: Pick<URL, 'hostname' | 'port'>): string | undefined {
  if (port === '0') return 'nothing listens on port 0'
  const name = hostname.replace(/^\[|\]$|\.$/g, '')
  if (isIP(name) !== 0) {
    const range = ipaddr.process(name).range()
    return range === 'multicast' || range === 'broadcast' ? `${name} is not the address of a single machine` : undefined
  }
  const isName = name.length <= NAME_LENGTH_MAX && name.split('.').every((label) => LABEL.test(label))
  return isName ? undefined : `${name.slice(0, 100)} is not a valid host name`
}
