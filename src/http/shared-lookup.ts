import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { SingleFlight } from '../async/single-flight.ts'

/** Resolves a name to all its addresses, as `lookup` of `node:dns/promises`. */
export type Resolve = (hostname: string, options: LookupAllOptions) => Promise<LookupAddress[]>

/**
 * Looks a name up once for all connections that want it at the same time. The system's look-ups share a few threads, and one
 * of a name whose servers are silent holds its thread for seconds: connections to one such host would take all of them, and
 * no other host could be reached.
 */
export function shareLookups(resolve: Resolve): LookupFunction {
  const lookups = new SingleFlight<LookupAddress[]>()
  return (hostname, options, callback) => {
    const { family = 0, hints = 0 } = options
    lookups
      .run(`${hostname} ${family} ${hints}`, () => resolve(hostname, { ...options, all: true } as LookupAllOptions))
      .then(
        (addresses) => {
          const [first] = addresses
          if (options.all) callback(null, addresses)
          else callback(null, first?.address ?? '', first?.family)
        },
        (error) => callback(error, ''),
      )
  }
}
