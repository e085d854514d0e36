import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { useNameServers } from '../../src/net/name-server.ts'

export interface NameServer {
  /** For `DNS_SERVERS`. */
  address: string
  /** Names that clients looked up, in order, once for each type of address. */
  asked: string[]
  close: () => Promise<void>
}

/**
 * A name server on a free port of this machine. If a name begins with `slow`, it never answers. If
 * a name begins with `broken`, it answers that it failed. It knows the names of `addresses`, and
 * says of all others that they do not exist.
 */
export async function startNameServer(addresses: Record<string, string[]> = {}): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = readQuestion(query)
    asked.push(name)
    if (name.startsWith('slow')) return
    const known = addresses[name]
    const rcode = name.startsWith('broken') ? SERVFAIL : known === undefined ? NXDOMAIN : 0
    const records = (known ?? []).filter((each) => type === (each.includes(':') ? AAAA : A)).map(recordOf)
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180 | rcode, 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, query.subarray(12, end), ...records]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  socket.unref()
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

const shared: { addresses: Record<string, string[]>; server?: Promise<NameServer> } = { addresses: {} }

/**
 * Makes this process use one name server for the rest of its life. Files of unit tests share a
 * process, so the choice of name servers holds for all files. Each file uses names of its own.
 */
export async function useTestNames(addresses: Record<string, string[]>): Promise<NameServer> {
  Object.assign(shared.addresses, addresses)
  shared.server ??= startNameServer(shared.addresses)
  const server = await shared.server
  useNameServers([server.address])
  return server
}

/** Types of records and codes of answers (RFC 1035, 3.2.2 and 4.1.1; RFC 3596). */
const A = 1
const AAAA = 28
const SERVFAIL = 2
const NXDOMAIN = 3

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase())
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** A record for the name in the question, valid for 60 s. */
function recordOf(address: string): Buffer {
  const isIpv6 = address.includes(':')
  const data = Buffer.from(isIpv6 ? ipv6Words(address) : address.split('.').map(Number))
  const head = Buffer.from([0xc0, 12, 0, isIpv6 ? AAAA : A, 0, 1, 0, 0, 0, 60, 0, data.length])
  return Buffer.concat([head, data])
}

function ipv6Words(address: string): number[] {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const words = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after]
  return words.map((word) => Number.parseInt(word, 16)).flatMap((word) => [word >> 8, word & 0xff])
}
