import { Resolver } from 'node:dns/promises'

/**
 * Each try with a name server, milliseconds, and the tries with each; a further try takes twice as
 * long.
 */
const TRY_MS_MAX = 500
const TRIES_MAX = 3

/**
 * Longest wait for the addresses of the other family once a name has some, milliseconds (RFC 8305,
 * 3, which waits for less: behind NAT64 the addresses that lead anywhere come last).
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
 * No address, in the words of the system's look-up: ENOTFOUND if a name has none, EAI_AGAIN if no
 * server says so.
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
 * The addresses of a complete name, IPv4 first. The queries leave from sockets of their own, which
 * `deadline` closes, and no thread waits for them. Each look-up reads the system's name servers
 * anew, because a machine changes networks.
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
