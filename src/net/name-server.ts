import { Resolver } from 'node:dns/promises'

/**
 * Timeout of the first try with a name server, milliseconds, and the number of tries with each
 * server. Each further try takes twice as long.
 */
const TRY_MS_MAX = 500
const TRIES_MAX = 3

/**
 * Longest wait for the addresses of the other family after the first family has arrived,
 * milliseconds. RFC 8305, 3 waits for less; but behind NAT64 the addresses that work come last.
 */
const OTHER_FAMILY_MS_MAX = 250

let servers: string[] = []

/**
 * Name servers for the whole process, in place of the system's; an empty list restores the system's
 * servers.
 */
export function useNameServers(addresses: string[]): void {
  servers = addresses
}

/**
 * A name has no address. The codes are the codes of the system's look-up: ENOTFOUND if a server
 * says that there is none, EAI_AGAIN if no server answered that.
 */
export class LookupError extends Error {
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN'
  readonly hostname: string

  constructor(code: LookupError['code'], hostname: string, cause?: unknown) {
    super(`lookup ${code} ${hostname}`, { cause })
    this.code = code
    this.hostname = hostname
  }
}

/** Codes of c-ares: there is no such name, it has no such address, or it cannot be a name. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/**
 * The addresses of a complete name, IPv4 first. The queries use their own sockets, which `deadline`
 * closes, so no thread waits for them. Each look-up reads the system's list of name servers again,
 * because a machine may change networks.
 *
 * @throws LookupError
 */
export async function queryAddresses(hostname: string, deadline: AbortSignal): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_MS_MAX, tries: TRIES_MAX })
  if (servers.length > 0) resolver.setServers(servers)
  const cancel = (): void => resolver.cancel()
  deadline.addEventListener('abort', cancel)
  let timer: NodeJS.Timeout | undefined
  const query = async (addresses: Promise<string[]>): Promise<string[]> => {
    const found = await addresses
    timer ??= setTimeout(cancel, OTHER_FAMILY_MS_MAX)
    return found
  }
  const results = await Promise.allSettled([query(resolver.resolve4(hostname)), query(resolver.resolve6(hostname))])
  clearTimeout(timer)
  deadline.removeEventListener('abort', cancel)
  const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  if (addresses.length > 0) return addresses
  const causes = results.map((result) => (result.status === 'rejected' ? result.reason : undefined))
  const unanswered = causes.find((cause) => !NO_ADDRESS.has(cause?.code))
  throw new LookupError(unanswered ? 'EAI_AGAIN' : 'ENOTFOUND', hostname, unanswered ?? causes[0])
}
