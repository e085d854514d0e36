import { ResponseCache } from '../src/cache/response-cache.ts'
import { UpstreamCaps } from '../src/caps/upstream-caps.ts'
import { loadCatalog } from '../src/catalog/catalog.ts'
import { sourcesOf } from '../src/catalog/fallback.ts'
import { warnOfUnknownVariables } from '../src/catalog/unknown-variables.ts'
import type { Config } from '../src/config.ts'
import { isSameRedis } from '../src/context.ts'
import { openDatabase } from '../src/db/database.ts'
import { LaneDirectory } from '../src/fleet/lane-directory.ts'
import { HealthCache } from '../src/health/health-cache.ts'
import type { Log } from '../src/log.ts'
import { OwnApis } from '../src/operator/own-apis.ts'
import { SettingsSync } from '../src/operator/upstream-settings.ts'
import { CallQueues } from '../src/queue/call-queue.ts'
import { ReplyOutbox } from '../src/queue/reply.ts'
import { Announcements } from '../src/redis/announcements.ts'
import { RedisClock } from '../src/redis/clock.ts'
import { closeRedis, openRedis, unlessAway } from '../src/redis/connection.ts'
import { MemoryHeadroom } from '../src/redis/memory-headroom.ts'
import { openCallLog } from '../src/telemetry/call-log-writer.ts'
import { openTelemetry } from '../src/telemetry/telemetry.ts'
import { RequestCoalescer } from './cache/request-coalescer.ts'
import { HeldCalls } from './jobs/held-calls.ts'
import { RunningCalls } from './jobs/running-calls.ts'
import type { WorkerDeps } from './jobs/worker-deps.ts'
import { GrantLedger } from './permits/grant-ledger.ts'
import { PermitClients } from './permits/permit-clients.ts'
import { SourceAddresses } from './source-addresses.ts'
import { AnswerMemory } from './upstream/answer-memory.ts'
import { HttpClients } from './upstream/http-client.ts'
import { ProviderKeys } from './upstream/provider-keys.ts'
import { retryBudgets } from './upstream/retry.ts'
import { SuccessBatcher } from './upstream/success-batcher.ts'
import { UnansweredRequests } from './upstream/unanswered-requests.ts'

/**
 * For all answers except the answer that began first, which may take 320 MB: a container with 768
 * MiB is not filled.
 */
const ANSWER_BYTES_MAX = 64 * 1_024 * 1_024

/** Share of a call's time that an attempt may take. */
const ATTEMPT_PART = 2 / 3

export interface WorkerContext {
  deps: WorkerDeps
  announcements: Announcements
  permits: PermitClients
  ownApis: OwnApis
  close: () => Promise<void>
}

export async function openWorkerContext(config: Config, log: Log): Promise<WorkerContext> {
  const redis = openRedis(config.redisUrls, 'blocking', log)
  const announcements = new Announcements(config.redisUrls, log)
  const cacheRedis = isSameRedis(config) ? redis : openRedis(config.cacheRedisUrls, 'producer', log)
  const db = openDatabase(config.databaseUrl, log, { connectionsMax: config.databaseConnections })
  const clock = new RedisClock(redis, log)
  const catalog = await loadCatalog(config.upstreams.bySlug, config.upstreams)
  warnOfUnknownVariables(config, catalog, log)
  const health = new HealthCache({ redis, announcements, clock, log }, sourcesOf(catalog))
  const caps = new UpstreamCaps({ redis, db, catalog })
  const settings = new SettingsSync({ config, log, catalog, db, redis })
  const addresses = new SourceAddresses({ redis, clock, caps, catalog, only: config.upstreams.only, log })
  settings.onChange(() => void addresses.note())
  const grants = new GrantLedger(db, clock, log)
  for (const part of [clock, health, grants]) part.open()
  await settings.open()
  const running = new RunningCalls()
  const telemetry = await openTelemetry(config, 'worker', {
    ...{ db, redis, log, catalog },
    inFlight: () => running.calls,
    serves: config.upstreams.only.length === 0 ? undefined : config.upstreams.only,
    now: () => clock.now(),
  })
  const now = () => clock.now()
  const callLog = openCallLog(config, { log, now, dropped: telemetry.droppedRows })
  const held = new HeldCalls()
  settings.onChange(() => held.look())
  const clients = new HttpClients()
  const permits = new PermitClients({ caps, catalog, log, grants, health })
  const lanes = new LaneDirectory({ redis, now: () => clock.now(), log })
  await lanes.open()
  const queues = new CallQueues(redis, log, lanes.laneOf)
  const ownApis = new OwnApis({ config, log, catalog, settings })
  ownApis.onChange(() => {
    health.follow(sourcesOf(catalog))
    void addresses.note()
  })
  ownApis.open()
  const deps: WorkerDeps = {
    ...{ log, redis, db, clock, catalog, health, held, running, telemetry, callLog, caps, queues },
    replies: new ReplyOutbox(redis),
    providerKeys: new ProviderKeys(db, config.secrets.encryption, log),
    headroom: new MemoryHeadroom(redis),
    successes: new SuccessBatcher({ redis, health, metrics: telemetry.metrics, log }),
    answerMemory: new AnswerMemory(ANSWER_BYTES_MAX),
    unanswered: new UnansweredRequests(),
    ...{ signup: config.accounts.signup, contact: config.upstreams.contact },
    attemptTimeoutMsMax: config.callTimeoutMs * ATTEMPT_PART,
    cache: new ResponseCache(cacheRedis, log),
    coalescer: new RequestCoalescer(redis, { isStoreElsewhere: cacheRedis !== redis }),
    clientOf: clients.of,
    permitClientOf: permits.of,
    budgetOf: retryBudgets(),
  }
  const close = async (): Promise<void> => {
    await unlessAway(redis, permits.close())
    lanes.close()
    for (const part of [ownApis, callLog, settings, queues, telemetry, health, clock, clients, grants])
      await part.close()
    await db.destroy()
    if (cacheRedis !== redis) await closeRedis(cacheRedis)
    announcements.close()
    await closeRedis(redis)
  }
  return { deps, announcements, permits, ownApis, close }
}
