import { isIP } from 'node:net'
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'

/**
 * Addresses of the list that are remembered as found. A client has few addresses, but a network may
 * have many.
 */
const KNOWN_MAX = 64

/** Addresses and networks from which requests are allowed. */
export class AddressList {
  readonly #networks: Network[]
  /**
   * Addresses that were found in the list, so that only a client's first request is compared with
   * it.
   */
  readonly #known = new Set<string>()

  /** @param networks as `normalizedNetwork` or Postgres writes them */
  constructor(networks: readonly string[]) {
    this.#networks = networks.flatMap((written) => readNetwork(written) ?? [])
  }

  /** @param address in its shortest form, as `request.ip` has it */
  has(address: string): boolean {
    if (this.#known.has(address)) return true
    if (isIP(address) === 0) return false
    const parsed = ipaddr.process(address)
    const isListed = this.#networks.some(
      ({ start, length }) => start.kind() === parsed.kind() && parsed.match(start, length),
    )
    if (isListed && this.#known.size < KNOWN_MAX) this.#known.add(address)
    return isListed
  }
}

/**
 * The only spelling of an address or a network (CIDR): without host bits, IPv4 in the form of IPv6
 * as IPv4, and a single address without a length. Undefined if the text is neither. A zone
 * (`fe80::1%eth0`) means nothing to other machines and is refused.
 */
export function normalizedNetwork(written: string): string | undefined {
  const network = readNetwork(written)
  if (!network) return undefined
  const { start, length } = network
  return length === bitsOf(start) ? start.toString() : `${start}/${length}`
}

interface Network {
  start: IPv4 | IPv6
  length: number
}

function readNetwork(written: string): Network | undefined {
  const [address = '', given, ...rest] = written.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined
  const parsed = ipaddr.process(address)
  const bits = bitsOf(parsed)
  if (given === undefined) return { start: parsed, length: bits }
  // The length of an IPv4 address in the form of IPv6 counts the 96 bits before it.
  const length = /^(0|[1-9]\d{0,2})$/.test(given) ? Number(given) - (version === 6 && bits === 32 ? 96 : 0) : -1
  if (length < 0 || length > bits) return undefined
  const family = bits === 32 ? ipaddr.IPv4 : ipaddr.IPv6
  return { start: family.networkAddressFromCIDR(`${parsed}/${length}`), length }
}

function bitsOf(address: IPv4 | IPv6): number {
  return address.kind() === 'ipv4' ? 32 : 128
}
