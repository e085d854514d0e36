import type { Socket } from 'node:net'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Log } from '../log.ts'
import { logConnection } from './connection-log.ts'
import { NamedConnector } from './connector.ts'
import { noteRefusal } from './missing-rights.ts'
import { RedisError, replyCodeOf } from './redis-error.ts'
import { endOnClusterNode } from './server-info.ts'
import { failOnStall, reconnectWhenSilent } from './silence.ts'

export type RedisConnection = Redis | Cluster

/** Longest wait of a producer for a reply of Redis, milliseconds. After it callers get 503. */
const SILENT_MS_MAX = 1_000

/** The same for a blocking connection, whose commands may block for 10 s. Milliseconds. */
const BLOCKING_SILENT_MS_MAX = 15_000

/**
 * Longest pause between two attempts to connect, milliseconds. The gateway works again within a
 * second after Redis does.
 */
const RECONNECT_MS_MAX = 1_000

/**
 * Opens a connection. A `producer` serves callers, so its commands fail at once while Redis is
 * away. A `blocking` connection belongs to a worker or to a blocking read, and waits for Redis as
 * long as necessary.
 */
export function openRedis(urls: string[], kind: 'producer' | 'blocking', log: Log): RedisConnection {
  const options = connectionOptions(kind)
  const redis = urls.length > 1 ? openCluster(urls, kind, options) : openSingle(urls[0] ?? '', options)
  logConnection(redis, { kind, urls }, log)
  if (redis instanceof Redis) {
    batchWritesPerTick(redis)
    if (kind === 'producer') failOnStall(redis, SILENT_MS_MAX)
    else {
      reconnectWhenSilent(redis, BLOCKING_SILENT_MS_MAX)
      endOnClusterNode(redis)
    }
  }
  return redis
}

type RedisSend = Parameters<Redis['sendCommand']>
type ClusterSend = Parameters<Cluster['sendCommand']>

/** A single Redis whose commands fail with RedisError. */
class TypedRedis extends Redis {
  override sendCommand(command: RedisSend[0], stream?: RedisSend[1]): unknown {
    const sending = typeFailures(this, command)
    const answer = super.sendCommand(command, stream)
    sending.isOver = true
    return answer
  }
}

/** A Redis Cluster whose commands fail with RedisError. */
class TypedCluster extends Cluster {
  override sendCommand(command: ClusterSend[0], stream?: ClusterSend[1], node?: ClusterSend[2]): unknown {
    const sending = typeFailures(this, command)
    const answer = super.sendCommand(command, stream, node)
    sending.isOver = true
    return answer
  }
}

/**
 * Makes the failures of a command RedisErrors. A command that fails while it is being sent has
 * never left this process.
 */
function typeFailures(redis: RedisConnection, command: RedisSend[0]): { isOver: boolean } {
  const sending = { isOver: false }
  const { name, reject } = command
  command.reject = (error) => {
    const typed = error instanceof RedisError ? error : new RedisError(error, { wasSent: sending.isOver })
    if (typed.replyCode === 'NOPERM') noteRefusal(redis, name, typed)
    reject(typed)
    // Without the database that the address names, the client would go on in database 0, which may
    // belong to another service.
    if (name === 'select' && typed.replyCode !== undefined) redis.disconnect(true)
  }
  return sending
}

function connectionOptions(kind: 'producer' | 'blocking') {
  return {
    // BullMQ needs blocking connections that retry for ever. A producer's commands fail with their
    // connection, because a repeated command could count a call twice.
    maxRetriesPerRequest: kind === 'blocking' ? null : 0,
    enableOfflineQueue: kind === 'blocking',
    connectTimeout: 5_000,
    // Redis 7.0 does not know CLIENT SETINFO, so an ACL could not allow it there.
    disableClientInfo: true,
    Connector: NamedConnector,
    retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 10), RECONNECT_MS_MAX),
  } satisfies RedisOptions
}

/** Codes with which a server answers that is a replica, or becomes a replica. */
const OF_REPLICAS = new Set(['READONLY', 'UNBLOCKED', 'MASTERDOWN'])

/** Shortest time between two reconnects because of a replica, milliseconds. */
const DEMOTED_MS_MIN = 1_000

/**
 * Opens a connection to a single Redis. If its server becomes a replica, the connection is opened
 * anew, because the address then leads to the new primary. The former primary keeps its connections
 * open: it refuses each write with READONLY, ends a blocking read with UNBLOCKED, and answers
 * MASTERDOWN while it has no primary. The command that gets this answer fails. A Cluster does not
 * need this, because its nodes say where a slot is now.
 */
function openSingle(url: string, options: ReturnType<typeof connectionOptions>): Redis {
  let reconnectedAt = Number.NEGATIVE_INFINITY
  const reconnectOnError = (error: Error): boolean => {
    if (!OF_REPLICAS.has(replyCodeOf(error) ?? '')) return false
    // If the address always leads to a replica, reconnecting without a pause must be avoided.
    if (performance.now() - reconnectedAt < DEMOTED_MS_MIN) return false
    reconnectedAt = performance.now()
    return true
  }
  return new TypedRedis(url, { ...options, reconnectOnError })
}

function openCluster(
  urls: string[],
  kind: 'producer' | 'blocking',
  { retryStrategy, enableOfflineQueue, ...options }: ReturnType<typeof connectionOptions>,
): Cluster {
  const nodes = urls.map(nodeOptions)
  return new TypedCluster(nodes, {
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    // The host name is passed on unresolved: TLS checks the certificate against it, and the
    // connector looks it up.
    dnsLookup: (hostname, callback) => callback(null, hostname),
    // One redirection every 100 ms, because a failover takes seconds. A blocking connection waits
    // for its end, as it does with a single Redis.
    ...(kind === 'blocking' ? { maxRedirections: REDIRECTIONS_MAX } : {}),
    redisOptions: {
      ...options,
      // Each command has its own time limit, because the Cluster manages its connections itself.
      ...(kind === 'producer' ? { commandTimeout: SILENT_MS_MAX } : { socketTimeout: BLOCKING_SILENT_MS_MAX }),
      // Credentials for nodes that are found later and are not in the list.
      ...credentials(new URL(urls[0] ?? '')),
    },
  })
}

/**
 * How often a command of a blocking connection is redirected by a changing Cluster before it fails.
 * It is enough for about an hour of failover.
 */
const REDIRECTIONS_MAX = 36_000

/** Address, credentials and TLS of one node, each from its own URL. */
function nodeOptions(text: string) {
  const url = new URL(text)
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 6379), ...credentials(url) }
}

function credentials(url: URL): Pick<RedisOptions, 'username' | 'password' | 'tls'> {
  return {
    ...(url.username ? { username: decodeURIComponent(url.username) } : {}),
    ...(url.password ? { password: decodeURIComponent(url.password) } : {}),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
  }
}

/**
 * What keys must have in common for one command: on a Redis Cluster the hash slot, on a single
 * Redis nothing.
 */
export function slotOf(redis: RedisConnection, key: string): string {
  return redis instanceof Cluster ? key.slice(0, key.indexOf('}')) : ''
}

/** Closes a connection: with QUIT if it is connected, otherwise at once. */
export async function closeRedis(redis: RedisConnection): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => redis.disconnect())
  else redis.disconnect()
}

/**
 * How long Redis may be away before a closing process gives up work that needs Redis, milliseconds.
 */
const AWAY_MS_MAX = 1_500

/**
 * Waits until work that needs Redis is done, or until Redis has been away for too long.
 *
 * @throws what the work throws
 */
export async function unlessAway(redis: RedisConnection, work: Promise<void>): Promise<'done' | 'away'> {
  const { promise, resolve } = Promise.withResolvers<'away'>()
  let readyAt = performance.now()
  const timer = setInterval(() => {
    if (redis.status === 'ready') readyAt = performance.now()
    else if (performance.now() - readyAt > AWAY_MS_MAX) resolve('away')
  }, 100)
  try {
    return await Promise.race([work.then(() => 'done' as const), promise])
  } finally {
    clearInterval(timer)
  }
}

/**
 * Sends all commands of one event-loop tick with one write instead of one write each. This saves a
 * tenth of the CPU time of a call. It depends on the field `stream` of ioredis, which a test
 * checks.
 */
export function batchWritesPerTick(redis: Redis): void {
  redis.on('connect', () => {
    const stream: Socket | undefined = Reflect.get(redis, 'stream')
    if (typeof stream?.cork !== 'function') return
    const write = stream.write
    let corked = false
    stream.write = ((...values: Parameters<typeof write>) => {
      if (!corked) {
        corked = true
        stream.cork()
        setImmediate(() => {
          corked = false
          stream.uncork()
        })
      }
      return write.apply(stream, values)
    }) as typeof write
  })
}
