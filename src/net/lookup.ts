import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { SingleFlight } from '../async/single-flight.ts'
import { LookupError, queryAddresses } from './name-server.ts'
import { completeNames, hostsFileAddresses } from './system-names.ts'

/**
 * Longest look-up of a name, milliseconds. It is less than the time that a connection to an
 * upstream may take.
 */
const LOOKUP_MS_MAX = 2_500

/**
 * Addresses of each family that a connection may try. A stranger's name may have hundreds, and a
 * connection tries the next as soon as one refuses it.
 */
const ADDRESSES_OF_FAMILY_MAX = 4

/** Names of this machine, whatever a name server says (RFC 6761, 6.3). */
const LOCALHOST = /^(?:[^.]+\.)*localhost\.?$/i
const LOOPBACK = ['127.0.0.1', '::1']

const underWay = new SingleFlight<LookupAddress[]>()

/**
 * Looks up the name for every connection that this process opens. Node's own look-up cannot be
 * cancelled, and holds one of a few threads for as long as a name server is silent. Silent servers
 * of strangers or of one upstream would then keep the process from its stores. Concurrent look-ups
 * of one name share one query.
 */
export const lookup: LookupFunction = (hostname, options, callback) => {
  findAddresses(hostname, options.family).then(
    (addresses) => {
      const [first] = addresses
      if (options.all) callback(null, addresses)
      else callback(null, first?.address ?? '', first?.family)
    },
    (error) => callback(error, ''),
  )
}

/** @throws LookupError if the name has no address of the family */
async function findAddresses(hostname: string, family: unknown): Promise<LookupAddress[]> {
  const addresses = await underWay.run(hostname.toLowerCase(), () => resolveName(hostname))
  const wanted = addresses.filter((address) => !FAMILIES.has(family) || address.family === FAMILIES.get(family))
  if (wanted.length === 0) throw new LookupError('ENOTFOUND', hostname)
  return wanted
}

/** Node writes an address family in two ways. Every other value means both families. */
const FAMILIES = new Map<unknown, number>([
  [4, 4],
  [6, 6],
  ['IPv4', 4],
  ['IPv6', 6],
])

async function resolveName(hostname: string): Promise<LookupAddress[]> {
  const addresses = isIP(hostname) === 0 ? await addressesOf(hostname) : [hostname]
  const left = new Map([4, 6].map((family) => [family, ADDRESSES_OF_FAMILY_MAX]))
  return addresses
    .map((address) => ({ address, family: isIP(address) }))
    .filter(({ family }) => {
      const more = left.get(family) ?? 0
      left.set(family, more - 1)
      return more > 0
    })
}

/**
 * Looks in the hosts file, then for names of this machine, then at the name servers. Nearly every
 * system uses this order.
 */
async function addressesOf(hostname: string): Promise<string[]> {
  const ofFile = hostsFileAddresses(hostname)
  if (ofFile.length > 0) return ofFile
  if (LOCALHOST.test(hostname)) return LOOPBACK
  const deadline = AbortSignal.timeout(LOOKUP_MS_MAX)
  let failure = new LookupError('ENOTFOUND', hostname)
  for (const name of completeNames(hostname)) {
    try {
      return await queryAddresses(name, deadline)
    } catch (error) {
      if (!(error instanceof LookupError)) throw error
      // The name may exist unless a server says that it does not.
      if (failure.code === 'ENOTFOUND') failure = new LookupError(error.code, hostname, error)
    }
    if (deadline.aborted) break
  }
  throw failure
}
