import { Cluster, Redis } from 'ioredis'
import type { Log } from '../log.ts'
import { NamedConnector } from './connector.ts'
import { REFUSED } from './missing-rights.ts'

/**
 * Logs what happens to a connection: why it failed, once for each new reason, and when it is ready
 * again. During an outage a connection fails three times a second for the same reason.
 */
export function logConnection(
  redis: Redis | Cluster,
  { kind, urls }: { kind: string; urls: string[] },
  log: Log,
): void {
  // The log contains neither user nor password.
  const hosts = urls.map((url) => new URL(url).host).join(',')
  let loggedReason: string | undefined
  const isTls = urls.some((url) => url.startsWith('rediss:'))
  redis.on('error', (error: Error) => {
    // A server without TLS waits for the rest of what it takes for a command, so the handshake
    // times out.
    const hint = isTls && Reflect.get(error, 'code') === 'ETIMEDOUT' ? ', or no TLS on this port' : ''
    const reason = reasonOf(error) + hint
    if (reason === loggedReason) return
    loggedReason = reason
    const warn = (cause = reason) => log.warn({ kind, hosts, reason: cause }, 'failed to connect to redis')
    // For a Cluster, ioredis does not say why the nodes cannot be used. Usually the reason is TLS,
    // or they are not a Cluster.
    if (redis instanceof Cluster) void findCause(urls).then(warn)
    else warn()
  })
  redis.on('close', () => {
    // This event also follows a failed attempt to connect, which was logged, and a connection that
    // we ended.
    if (loggedReason !== undefined || redis.status === 'end') return
    loggedReason = ''
    const warn = (reason = 'the connection was closed') => log.warn({ kind, hosts, reason }, 'redis connection lost')
    // ioredis closes an incomplete Cluster without a reason.
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
 * The message of an error. For a Cluster, the message of the node that failed last is added. If a
 * host has several addresses, the error has no message, so its code is used.
 */
function reasonOf(error: Error): string {
  const { lastNodeError, code } = error as { lastNodeError?: Error; code?: string }
  if (lastNodeError instanceof Error) return `${error.message} ${reasonOf(lastNodeError)}`
  return error.message || code || error.name
}

/** How long a node may take to tell why it cannot be used, milliseconds. */
const CAUSE_MS_MAX = 5_000

/**
 * Why a Cluster cannot be used, with the address of the first node that tells it; undefined if no
 * node does. Never throws.
 */
async function findCause(urls: string[]): Promise<string | undefined> {
  for (const url of urls) {
    const cause = await findCauseAt(url)
    if (cause !== undefined) return `${new URL(url).host}: ${cause}`
  }
  return undefined
}

/**
 * Why one node cannot be used: it is unreachable, or it reports slots that nobody serves. Never
 * throws.
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
