import { Cluster, Redis } from 'ioredis'
import type { Log } from '../log.ts'
import { NamedConnector } from './connector.ts'
import { REFUSED } from './missing-rights.ts'

/**
 * Writes down what becomes of a connection: why it failed, once and again whenever the reason
 * changes, and when it is ready after a failure. An outage fails three times a second for the same
 * reason.
 */
export function logConnection(
  redis: Redis | Cluster,
  { kind, urls }: { kind: string; urls: string[] },
  log: Log,
): void {
  // Neither user nor password.
  const hosts = urls.map((url) => new URL(url).host).join(',')
  let loggedReason: string | undefined
  const isTls = urls.some((url) => url.startsWith('rediss:'))
  redis.on('error', (error: Error) => {
    // A server without TLS waits for the rest of what it takes for a command.
    const hint = isTls && Reflect.get(error, 'code') === 'ETIMEDOUT' ? ', or no TLS on this port' : ''
    const reason = reasonOf(error) + hint
    if (reason === loggedReason) return
    loggedReason = reason
    const warn = (cause = reason) => log.warn({ kind, hosts, reason: cause }, 'failed to connect to redis')
    // Of a Cluster, ioredis keeps to itself why its nodes are of no use: TLS, usually, or that they
    // are no Cluster.
    if (redis instanceof Cluster) void findCause(urls).then(warn)
    else warn()
  })
  redis.on('close', () => {
    // A failed attempt to connect ends with this too, and has said why.
    // A connection that we ended is over at once.
    if (loggedReason !== undefined || redis.status === 'end') return
    loggedReason = ''
    const warn = (reason = 'the connection was closed') => log.warn({ kind, hosts, reason }, 'redis connection lost')
    // A Cluster that is not whole closes without a word.
    if (redis instanceof Cluster) void findCause(urls).then(warn)
    else warn()
  })
  const refused = new Set<string>()
  redis.on(REFUSED, (words: string, err: Error) => {
    if (refused.has(words)) return
    refused.add(words)
    log.error({ kind, hosts, err }, words)
  })
  redis.on('ready', () => {
    if (loggedReason === undefined) return
    loggedReason = undefined
    log.info({ kind, hosts }, 'redis connection ready again')
  })
}

/**
 * The message of an error; for a Cluster, the message of the node that failed last. An address of
 * several has no message of its own.
 */
function reasonOf(error: Error): string {
  const { lastNodeError, code } = error as { lastNodeError?: Error; code?: string }
  if (lastNodeError instanceof Error) return `${error.message} ${reasonOf(lastNodeError)}`
  return error.message || code || error.name
}

/** How long a node may take to say why it is of no use, milliseconds. */
const CAUSE_MS_MAX = 5_000

/**
 * Why a Cluster is of no use, with the address of the first node that says it; undefined if none
 * does. Never throws.
 */
async function findCause(urls: string[]): Promise<string | undefined> {
  for (const url of urls) {
    const cause = await findCauseAt(url)
    if (cause !== undefined) return `${new URL(url).host}: ${cause}`
  }
  return undefined
}

/**
 * Why one node cannot be used: it cannot be reached, or it says that slots are served by nobody.
 * Never throws.
 */
async function findCauseAt(url: string): Promise<string | undefined> {
  const times = { connectTimeout: CAUSE_MS_MAX, commandTimeout: CAUSE_MS_MAX }
  const node = new Redis(url, {
    ...times,
    disableClientInfo: true,
    Connector: NamedConnector,
    lazyConnect: true,
    retryStrategy: () => null,
  })
  const causes: string[] = []
  node.on('error', (error: Error) => causes.push(reasonOf(error)))
  try {
    await node.connect()
    const info = String(await node.cluster('INFO'))
    if (/cluster_state:ok/.test(info)) return undefined
    const served = /cluster_slots_ok:(\d+)/.exec(info)?.[1] ?? 'an unknown number'
    return `the Cluster is down: ${served} of 16384 slots are served`
  } catch (error) {
    return causes[0] ?? reasonOf(error instanceof Error ? error : new Error(String(error)))
  } finally {
    node.disconnect()
  }
}
