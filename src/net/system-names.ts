import { readFileSync, statSync } from 'node:fs'

const HOSTS = process.platform === 'win32' ? 'C:\\Windows\\System32\\drivers\\etc\\hosts' : '/etc/hosts'
const RESOLVER = '/etc/resolv.conf'

/** How the system completes a short name (resolv.conf, 5). */
export interface SearchList {
  domains: string[]
  /** A name with fewer dots than this is first tried with the search domains. */
  dots: number
}

/** Addresses of each name of a hosts file, in its order. Names are in lower case. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const [address, ...names] of fieldsOf(text)) {
    if (address === undefined) continue
    for (const name of names) hosts.set(name.toLowerCase(), [...(hosts.get(name.toLowerCase()) ?? []), address])
  }
  return hosts
}

/** If the file has several lines with `search` or `domain`, the last line counts. */
export function parseSearchList(text: string): SearchList {
  const list: SearchList = { domains: [], dots: 1 }
  for (const [keyword, ...values] of fieldsOf(text)) {
    if (keyword === 'search' || keyword === 'domain') list.domains = values
    if (keyword !== 'options') continue
    for (const value of values) if (/^ndots:\d+$/.test(value)) list.dots = Number(value.slice('ndots:'.length))
  }
  return list
}

/** Addresses of a name in the hosts file; none if the file does not name it. */
export function hostsFileAddresses(hostname: string): string[] {
  return hosts().get(hostname.toLowerCase().replace(/\.$/, '')) ?? []
}

/** The names to query for a name, in this order. If a name ends with a dot, it is complete. */
export function completeNames(hostname: string, { domains, dots }: SearchList = searchList()): string[] {
  if (hostname.endsWith('.')) return [hostname]
  const longer = domains.map((domain) => `${hostname}.${domain.replace(/\.$/, '')}`)
  const isShort = hostname.split('.').length - 1 < dots
  return isShort ? [...longer, hostname] : [hostname, ...longer]
}

const hosts = followFile(HOSTS, parseHosts)
const searchList = followFile(RESOLVER, parseSearchList)

function fieldsOf(text: string): string[][] {
  return text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .split(/\s+/)
      .filter(Boolean),
  )
}

/**
 * The parsed content of a small file, parsed again when the file has changed. A file that cannot be
 * read counts as empty.
 */
function followFile<T>(path: string, parse: (text: string) => T): () => T {
  let version = ''
  let parsed: T | undefined
  return () => {
    const { mtimeMs, ino, size } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: 0, ino: 0, size: 0 }
    const seen = `${mtimeMs} ${ino} ${size}`
    if (parsed !== undefined && seen === version) return parsed
    version = seen
    try {
      parsed = parse(readFileSync(path, 'utf8'))
    } catch {
      // If the file does not exist, or this user may not read it, the system has no such names.
      parsed = parse('')
    }
    return parsed
  }
}
