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

/** Longest that a producer waits for a reply of Redis, milliseconds: past it callers get 503. */
const SILENT_MS_MAX = 1_000

/** The same of a blocking connection, which may block in one command for 10 s. Milliseconds. */
const BLOCKING_SILENT_MS_MAX = 15_000

/**
 * Longest pause between two tries to connect, milliseconds: service is back within a second of
 * Redis.
 */
const RECONNECT_MS_MAX = 1_000

/**
 * Opens a connection. A `producer` answers a caller: it fails at once when Redis is away. A
 * `blocking` connection belongs to a worker or to a blocking read: it waits for Redis as long as
 * that takes.
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
 * Makes a command fail with RedisError. A command that fails while it is being sent has never left
 * this process.
 */
function typeFailures(redis: RedisConnection, command: RedisSend[0]): { isOver: boolean } {
  const sending = { isOver: false }
  const { name, reject } = command
  command.reject = (error) => {
    const typed = error instanceof RedisError ? error : new RedisError(error, { wasSent: sending.isOver })
    if (typed.replyCode === 'NOPERM') noteRefusal(redis, name, typed)
    reject(typed)
  }
  return sending
}

function connectionOptions(kind: 'producer' | 'blocking') {
  return {
    // BullMQ wants its blocking connections to retry for ever. A producer's commands fail with
    // their connection: sent again on the next connection they could count a call twice.
    maxRetriesPerRequest: kind === 'blocking' ? null : 0,
    enableOfflineQueue: kind === 'blocking',
    connectTimeout: 5_000,
    // CLIENT SETINFO is unknown to Redis 7.0, so that no rule of an ACL could allow it there.
    disableClientInfo: true,
    Connector: NamedConnector,
    retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 10), RECONNECT_MS_MAX),
  } satisfies RedisOptions
}

/** Codes of the Redis protocol that a server answers with when it is a replica, or becomes one. */
const OF_REPLICAS = new Set(['READONLY', 'UNBLOCKED', 'MASTERDOWN'])

/** Shortest time between two reconnects that a replica causes, milliseconds. */
const DEMOTED_MS_MIN = 1_000

/**
 * A single Redis. When its server becomes a replica, the connection is opened anew, because the
 * same address leads to the new primary then: the former one keeps its connections open and refuses
 * each write with READONLY. A read that blocks at that moment gets UNBLOCKED. MASTERDOWN is what a
 * replica without its primary says. The command that met the replica fails. A Cluster needs none of
 * this: its nodes say where a slot has gone.
 */
function openSingle(url: string, options: ReturnType<typeof connectionOptions>): Redis {
  let reconnectedAt = Number.NEGATIVE_INFINITY
  const reconnectOnError = (error: Error): boolean => {
    if (!OF_REPLICAS.has(replyCodeOf(error) ?? '')) return false
    // An address that leads to a replica for good must not be connected to without a pause.
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
    // The name stays: TLS checks the certificate against it, and the connector looks it up.
    dnsLookup: (hostname, callback) => callback(null, hostname),
    // One every 100 ms: a failover takes seconds. A blocking connection waits it out, as it does
    // for a single Redis.
    ...(kind === 'blocking' ? { maxRedirections: REDIRECTIONS_MAX } : {}),
    redisOptions: {
      ...options,
      // Its connections are its own business: each command has a time of its own.
      ...(kind === 'producer' ? { commandTimeout: SILENT_MS_MAX } : { socketTimeout: BLOCKING_SILENT_MS_MAX }),
      // For the nodes that are found later, of which the list says nothing.
      ...credentials(new URL(urls[0] ?? '')),
    },
  })
}

/**
 * How often a blocking connection's command follows a Cluster that is changing before it fails:
 * about an hour of failover.
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
 * What keys must share for one command to use them: on a Redis Cluster their hash slot, on one
 * Redis nothing.
 */
export function slotOf(redis: RedisConnection, key: string): string {
  return redis instanceof Cluster ? key.slice(0, key.indexOf('}')) : ''
}

/** Closes a connection: politely when it is up, at once when it is not. */
export async function closeRedis(redis: RedisConnection): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => redis.disconnect())
  else redis.disconnect()
}

/**
 * How long Redis may be away before work that needs it is given up at the end of a process,
 * milliseconds.
 */
const AWAY_MS_MAX = 1_500

/**
 * Waits for work that needs Redis to be done, but not for a Redis that stays away.
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
 * Sends all commands of one event-loop tick in one write instead of one each: a tenth of the CPU of
 * a call. Leans on the `stream` field of ioredis, which a test pins.
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
