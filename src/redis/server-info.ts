import { Cluster, Redis } from 'ioredis'
import type { RedisConnection } from './connection.ts'
import { NamedConnector } from './connector.ts'

/** SET takes NX and GET together since 7.0; every Valkey says that it is newer. */
const REDIS_MIN = { major: 7, minor: 0 }

/** How long a Redis may take to answer `INFO`, milliseconds. */
const PROBE_MS_MAX = 2_000

/** Why a Redis cannot be used over this connection, by its own `INFO`; undefined if it can. */
export function problemOf(info: string, redis: RedisConnection): string | undefined {
  const version = /^redis_version:(\d+)\.(\d+)\S*/m.exec(info)
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])]
  if (major < REDIS_MIN.major || (major === REDIS_MIN.major && minor < REDIS_MIN.minor)) {
    return `Redis ${major}.${minor} is too old; 7.0 or newer is needed`
  }
  if (isClusterNode(info) && !(redis instanceof Cluster)) {
    return 'Redis is a node of a Cluster and is used as a single one'
  }
  // Any node of a Cluster can be queried, because it sends each write on by itself.
  if (/^role:slave/m.test(info) && !(redis instanceof Cluster)) {
    return 'Redis is a replica and takes no writes: REDIS_URL must lead to the primary'
  }
  return undefined
}

/** Valkey writes `server_mode`, and `redis_mode` in its compatibility mode only. */
function isClusterNode(info: string): boolean {
  return /^(?:redis|server)_mode:cluster/m.test(info)
}

/**
 * Ends the process when a connection to a single Redis turns out to lead to a node of a Cluster,
 * which was away when the process started. The process cannot use the Cluster as a single Redis. At
 * its next start it finds the nodes of the Cluster.
 */
export function endOnClusterNode(redis: Redis): void {
  redis.on('ready', () => {
    redis.info('server').then(
      (info) => {
        if (!isClusterNode(info)) return
        // Thrown outside of any promise: nobody could go on from here.
        setImmediate(() => {
          throw new Error('Redis is a node of a Cluster and was taken for a single one')
        })
      },
      // Not allowed to say: it is used as what it was given as.
      () => undefined,
    )
  })
}

/**
 * All nodes of the Redis Cluster that a single address leads to, as addresses with the same
 * credentials; else the addresses as they are. A Redis that does not answer is taken as it is
 * given: the boot does not wait for it.
 */
async function findClusterNodes(urls: string[]): Promise<string[]> {
  const [url, ...others] = urls
  if (url === undefined || others.length > 0) return urls
  const redis = new Redis(url, {
    lazyConnect: true,
    Connector: NamedConnector,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: PROBE_MS_MAX,
    commandTimeout: PROBE_MS_MAX,
    disconnectTimeout: 50,
  })
  // The commands fail with it; why is said by the connections that are opened next.
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    if (!isClusterNode(await redis.info('server'))) return urls
    const ranges = await redis.cluster('SLOTS')
    const addresses = ranges.flatMap(([, , ...nodes]) => nodes.map(([host, port]) => withHost(url, host, port)))
    // Twice at least: several addresses are what makes a Cluster.
    return [url, ...(addresses.length > 0 ? new Set(addresses) : [url])]
  } catch {
    return urls
  } finally {
    redis.disconnect()
  }
}

/** The settings with every node of the Cluster that a single address leads to. */
export async function withClusterNodes<T extends { redisUrls: string[]; cacheRedisUrls: string[] }>(
  settings: T,
): Promise<T> {
  const redisUrls = await findClusterNodes(settings.redisUrls)
  const isSame = settings.cacheRedisUrls.join() === settings.redisUrls.join()
  return {
    ...settings,
    redisUrls,
    cacheRedisUrls: isSame ? redisUrls : await findClusterNodes(settings.cacheRedisUrls),
  }
}

function withHost(url: string, host: string, port: number): string {
  const address = new URL(url)
  if (host !== '') address.hostname = host.includes(':') ? `[${host}]` : host
  address.port = String(port)
  return address.href
}
