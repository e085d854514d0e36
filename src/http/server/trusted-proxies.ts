import { BlockList, isIPv6 } from 'node:net'

/**
 * Whether an address belongs to a proxy whose forwarded headers count. False without an address,
 * for example on a pipe.
 */
export type IsProxy = (address: string | undefined) => boolean

/** The named ranges of `TRUST_PROXY`. */
export const NAMED_RANGES: Record<string, string[]> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Makes the check from `TRUST_PROXY`. A node makes it once, so that all its users agree. */
export function trustProxies(items: string[]): IsProxy {
  const list = new BlockList()
  for (const range of items.flatMap((item) => NAMED_RANGES[item] ?? [item])) {
    const [address = '', length] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (length === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(length), family)
  }
  return (address) => address !== undefined && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
