import { Cluster, Redis } from 'ioredis'
import type { RedisConnection } from './connection.ts'
import { NamedConnector } from './connector.ts'

/** SET accepts NX and GET together since 7.0. Every Valkey reports a newer version. */
const REDIS_MIN = { major: 7, minor: 0 }

/** How long a Redis may take to answer `INFO`, milliseconds. */
const PROBE_MS_MAX = 2_000

/**
 * Why a Redis cannot be used with this connection, according to its `INFO`; undefined if it can.
 */
export function problemOf(info: string, redis: RedisConnection): string | undefined {
  const version = /^redis_version:(\d+)\.(\d+)\S*/m.exec(info)
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])]
  if (major < REDIS_MIN.major || (major === REDIS_MIN.major && minor < REDIS_MIN.minor)) {
    return `Redis ${major}.${minor} is too old; 7.0 or newer is needed`
  }
  if (isClusterNode(info) && !(redis instanceof Cluster)) {
    return 'Redis is a node of a Cluster, but the gateway is connected to it as to a single Redis'
  }
  // Any node of a Cluster may be asked, because the Cluster redirects writes.
  if (/^role:slave/m.test(info) && !(redis instanceof Cluster)) {
    return 'Redis is a replica and accepts no writes: REDIS_URL must be the address of the primary'
  }
  return undefined
}

/** Valkey writes `server_mode`; in its compatibility mode it writes `redis_mode`, like Redis. */
function isClusterNode(info: string): boolean {
  return /^(?:redis|server)_mode:cluster/m.test(info)
}

/**
 * Ends the process if a connection to a single Redis leads to a node of a Cluster. This can only
 * happen if Redis was away when the process started. At the next start the process finds the nodes
 * of the Cluster.
 */
export function endOnClusterNode(redis: Redis): void {
  redis.on('ready', () => {
    redis.info('server').then(
      (info) => {
        if (!isClusterNode(info)) return
        // The error is thrown outside of any promise, so that nothing catches it and the process
        // ends.
        setImmediate(() => {
          throw new Error('Redis is a node of a Cluster, but the gateway connected to it as to a single Redis')
        })
      },
      // The user may not run INFO, so the Redis is used as configured.
      () => undefined,
    )
  })
}

/**
 * All nodes of the Redis Cluster to which a single address leads, as addresses with the same
 * credentials. If it is not a Cluster or does not answer, the given addresses are returned, because
 * the start of a process must not wait for Redis.
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
  // The commands fail with this error too, and the connections that are opened next log it.
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    if (!isClusterNode(await redis.info('server'))) return urls
    const ranges = await redis.cluster('SLOTS')
    const addresses = ranges.flatMap(([, , ...nodes]) => nodes.map(([host, port]) => withHost(url, host, port)))
    // The address is listed twice at least, because several addresses mean a Cluster.
    return [url, ...(addresses.length > 0 ? new Set(addresses) : [url])]
  } catch {
    return urls
  } finally {
    redis.disconnect()
  }
}

/** The settings, with all nodes of the Cluster if a single address leads to a Cluster. */
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
