import { LRUCache } from 'lru-cache'
import { Mailer } from './accounts/mailer.ts'
import { PrincipalCache } from './admission/authenticate.ts'
import { KnownFromReplies } from './admission/known-from-replies.ts'
import { SingleFlight } from './async/single-flight.ts'
import { ResponseCache } from './cache/response-cache.ts'
import { UpstreamCaps } from './caps/upstream-caps.ts'
import { type Catalog, loadCatalog } from './catalog/catalog.ts'
import { sourcesOf } from './catalog/fallback.ts'
import { warnOfUnknownVariables } from './catalog/unknown-variables.ts'
import type { Config } from './config.ts'
import { type Db, openConnections, openDatabase } from './db/database.ts'
import type { SessionUser } from './db/sessions.ts'
import { GatewayError } from './errors.ts'
import { LaneDirectory } from './fleet/lane-directory.ts'
import { HealthCache } from './health/health-cache.ts'
import { AccountRequests } from './http/request/account-requests.ts'
import { heldBytesMax } from './http/server/held-bytes.ts'
import { AccountLimits } from './limits/account-limits.ts'
import { CallEndBatcher } from './limits/call-end-batcher.ts'
import { MonthNotices } from './limits/month-notices.ts'
import type { Log } from './log.ts'
import { OwnApis } from './operator/own-apis.ts'
import { SettingsSync } from './operator/upstream-settings.ts'
import { CallQueues } from './queue/call-queue.ts'
import { KeptResults } from './queue/kept-results.ts'
import { ReplyInbox } from './queue/reply.ts'
import { Announcements } from './redis/announcements.ts'
import { RedisClock } from './redis/clock.ts'
import { closeRedis, openRedis, type RedisConnection } from './redis/connection.ts'
import { CallLines } from './telemetry/call-lines.ts'
import { type CallLogWriter, openCallLog } from './telemetry/call-log-writer.ts'
import { openTelemetry, type Telemetry } from './telemetry/telemetry.ts'
import { UnknownKeys } from './throttles/unknown-keys.ts'

/** All long-lived objects of an API node. */
export interface Context {
  config: Config
  log: Log
  /** The log for lines of calls. */
  callLines: CallLines
  /** Writes the log of calls, which has a row for each call for its account and operators. */
  callLog: CallLogWriter
  catalog: Catalog
  db: Db
  /** A few connections for requests without a credential, or with one that may be made up. */
  strangersDb: Db
  /** Connections for reports, which read many rows and must not delay short statements on `db`. */
  reportsDb: Db
  /** Commands fail at once while Redis is away. */
  redis: RedisConnection
  /** The Redis for stored answers. It is `redis` unless CACHE_REDIS_URL is set. */
  cacheRedis: RedisConnection
  principals: PrincipalCache
  unknownKeys: UnknownKeys
  /** The sessions that this node found last, by id, each with its user. */
  knownSessions: LRUCache<string, SessionUser>
  accountRequests: AccountRequests
  /** Set if the operator has a mail server. */
  mailer: Mailer | undefined
  cache: ResponseCache
  known: KnownFromReplies
  caps: UpstreamCaps
  lanes: LaneDirectory
  queues: CallQueues
  replies: ReplyInbox
  /** Results of asynchronous calls that were recently fetched. */
  keptResults: KeptResults
  accountLimits: AccountLimits
  callEnds: CallEndBatcher
  monthLoads: SingleFlight<number>
  /** Undefined if nothing is mailed. */
  monthNotices: MonthNotices | undefined
  /** The time of Redis. */
  clock: RedisClock
  announcements: Announcements
  /** Health of every upstream, kept up to date. */
  health: HealthCache
  /** Keeps the operators' settings applied to the catalog. */
  settings: SettingsSync
  /** Keeps the operator's documents in the catalog equal to the files of their folder. */
  ownApis: OwnApis
  telemetry: Telemetry
  /** Set when the node is closing: it finishes its work and accepts nothing new. */
  isDraining: boolean
}

/** The share of the bytes held for clients that cached results may take. */
const KEPT_RESULTS_SHARE = 1 / 8

/** Connections to Postgres that serve requests of strangers. */
const STRANGERS_CONNECTIONS_MAX = 2

/** Connections to Postgres that serve reports. */
const REPORTS_CONNECTIONS_MAX = 2

/**
 * Most sessions that are remembered. If there are more, the least recently used session is looked
 * up once like an unknown credential.
 */
const KNOWN_SESSIONS_MAX = 20_000

/**
 * Opens what an API node or the operator console needs, according to `kind`. It does not wait for
 * Postgres or Redis; they are used when they are available.
 */
export async function openContext(config: Config, log: Log, kind: 'web' | 'ops'): Promise<Context> {
  const redis = openRedis(config.redisUrls, 'producer', log)
  const cacheRedis = isSameRedis(config) ? redis : openRedis(config.cacheRedisUrls, 'producer', log)
  const clock = new RedisClock(redis, log)
  clock.open()
  const principals = new PrincipalCache(() => clock.now())
  redis.on('close', () => principals.clear())
  const replies = new ReplyInbox(openRedis(config.redisUrls, 'blocking', log), redis, log)
  replies.open()
  const catalog = await loadCatalog(config.upstreams.bySlug, config.upstreams)
  warnOfUnknownVariables(config, catalog, log)
  const announcements = new Announcements(config.redisUrls, log)
  const health = new HealthCache({ redis, announcements, clock, log }, sourcesOf(catalog))
  health.open()
  const databases = openDatabases(config, log)
  const { db } = databases
  const settings = new SettingsSync({ config, log, catalog, db, redis })
  await settings.open()
  const now = () => clock.now()
  const telemetry = await openTelemetry(config, kind, { db, redis, log, catalog, inFlight: () => replies.waiting, now })
  const mailer = openMailer(config)
  const lanes = new LaneDirectory({ redis, now, log })
  await lanes.open()
  const ownApis = new OwnApis({ config, log, catalog, settings, lanes })
  ownApis.onChange(() => health.follow(sourcesOf(catalog)))
  ownApis.open()
  return {
    config,
    log,
    callLines: new CallLines(log),
    callLog: openCallLog(config, { log, now, dropped: telemetry.droppedRows }),
    catalog,
    ...databases,
    redis,
    principals,
    unknownKeys: new UnknownKeys(config.throttles.unknownKeysPerMinute),
    knownSessions: new LRUCache({ max: KNOWN_SESSIONS_MAX }),
    accountRequests: new AccountRequests(config.throttles.accountRequestsPerSecond),
    mailer,
    cache: new ResponseCache(cacheRedis, log),
    known: new KnownFromReplies(),
    caps: new UpstreamCaps({ redis, db, catalog }),
    lanes,
    queues: new CallQueues(redis, log, lanes.laneOf),
    replies,
    keptResults: new KeptResults(redis, Math.floor(heldBytesMax() * KEPT_RESULTS_SHARE)),
    accountLimits: new AccountLimits(redis),
    callEnds: new CallEndBatcher(redis, log),
    monthLoads: new SingleFlight(),
    monthNotices: mailer && new MonthNotices({ db, log, config, mailer }),
    clock,
    announcements,
    health,
    settings,
    ownApis,
    telemetry,
    isDraining: false,
    cacheRedis,
  }
}

/** The same database by three pools, so that strangers and reports take no connection of calls. */
function openDatabases({ databaseUrl, databaseConnections }: Config, log: Log) {
  const strangers = { connectionsMax: STRANGERS_CONNECTIONS_MAX, connectionsMin: STRANGERS_CONNECTIONS_MAX }
  const strangersDb = openDatabase(databaseUrl, log, strangers)
  openConnections(strangersDb, STRANGERS_CONNECTIONS_MAX)
  return {
    db: openDatabase(databaseUrl, log, { connectionsMax: databaseConnections, connectionsMin: 1 }),
    strangersDb,
    reportsDb: openDatabase(databaseUrl, log, { connectionsMax: REPORTS_CONNECTIONS_MAX }),
  }
}

/** Whether answers are stored in the Redis of the queues. */
export function isSameRedis({ redisUrls, cacheRedisUrls }: Config): boolean {
  return redisUrls.join() === cacheRedisUrls.join()
}

function openMailer({ accounts: { smtpUrl, mailFrom } }: Config): Mailer | undefined {
  return smtpUrl === undefined ? undefined : new Mailer({ smtpUrl, from: mailFrom })
}

/**
 * Closes everything in the reverse order of opening. Ending calls whose callers have left needs
 * queues and replies, so these are closed later.
 */
export async function closeContext(context: Context): Promise<void> {
  await context.telemetry.close()
  await context.ownApis.close()
  await context.settings.close()
  context.health.close()
  context.announcements.close()
  context.clock.close()
  context.replies.rejectAll(new GatewayError('DRAINING'))
  await context.callEnds.close()
  context.callLines.close()
  await context.callLog.close()
  context.lanes.close()
  await context.queues.close()
  await context.replies.close()
  if (context.cacheRedis !== context.redis) await closeRedis(context.cacheRedis)
  await closeRedis(context.redis)
  await context.mailer?.close()
  await context.reportsDb.destroy()
  await context.strangersDb.destroy()
  await context.db.destroy()
}
