import { resealAll } from '../src/accounts/reseal.ts'
import { SingleFlight } from '../src/async/single-flight.ts'
import { endOverdueCalls } from '../src/calls/end-overdue-calls.ts'
import { type Api, type Catalog, loadCatalog } from '../src/catalog/catalog.ts'
import { sourcesOf } from '../src/catalog/fallback.ts'
import { probeEverySeconds, probeSlowdown } from '../src/catalog/probe-interval.ts'
import { warnOfUnknownVariables } from '../src/catalog/unknown-variables.ts'
import type { Secret } from '../src/config.ts'
import { CallLogPartitions } from '../src/db/call-log-partitions.ts'
import { type Db, openDatabase } from '../src/db/database.ts'
import { deleteOldHealthChanges } from '../src/db/health-changes.ts'
import { LaneDirectory } from '../src/fleet/lane-directory.ts'
import { drainHealthChanges } from '../src/health/drain-changes.ts'
import { HealthCache } from '../src/health/health-cache.ts'
import { RECHECK_MS, recheckPauseMs } from '../src/health/health-thresholds.ts'
import { createLog, type Log } from '../src/log.ts'
import { OwnApis } from '../src/operator/own-apis.ts'
import { SettingsSync } from '../src/operator/upstream-settings.ts'
import { loadSettings, runProcess } from '../src/process.ts'
import { CallQueues } from '../src/queue/call-queue.ts'
import { enqueueProbe, halfOpenProbe } from '../src/queue/probe-job.ts'
import { Announcements } from '../src/redis/announcements.ts'
import { RedisClock } from '../src/redis/clock.ts'
import { closeRedis, openRedis, type RedisConnection } from '../src/redis/connection.ts'
import { type CallLogWriter, openCallLog } from '../src/telemetry/call-log-writer.ts'
import { openTelemetry, type Telemetry } from '../src/telemetry/telemetry.ts'
import { queueOverdueValidations } from './overdue-validations.ts'
import { ProbeSchedule } from './probe-schedule.ts'

const TICK_MS = 1_000

const CLEAN_EVERY_MS = 3_600_000

/**
 * Interval of a check of schedulers and unwritten change records, whatever was announced.
 * Milliseconds.
 */
const REPAIR_EVERY_MS = 60_000

/** How often it is looked for calls past their deadline that no worker takes. */
const OVERDUE_LOOK_MS = 30_000

/** With RECHECK_MS, upstreams in trouble are probed again within a minute. */
const RECHECK_LOOK_MS = 10_000

/** Upstreams with longer pauses between probes get no half-open probe. Seconds. */
const HALF_OPEN_PROBE_SECONDS_MAX = 600

interface ProbeDeps {
  catalog: Catalog
  redis: RedisConnection
  db: Db
  queues: CallQueues
  settings: SettingsSync
  ownApis: OwnApis
  clock: RedisClock
  health: HealthCache
  telemetry: Telemetry
  callLog: CallLogWriter
  /** Keys that seal stored secrets, the current key first. */
  encryption: Secret[]
  log: Log
  /** Due time of the last half-open probe, by slug. */
  scheduled: Map<string, number>
  /** Upstreams with change records that may not be in Postgres. */
  undrained: Set<string>
}

/**
 * Schedules probes, which workers run, writes health changes to Postgres, ends calls that no worker
 * takes, queues lost validations of provider keys, and seals stored secrets anew while
 * ENCRYPTION_KEY is replaced. Any number may run.
 */
await runProcess('probe', async () => {
  const config = await loadSettings('probe')
  const log = createLog(config.log, 'probe')
  const redis = openRedis(config.redisUrls, 'blocking', log)
  const db = openDatabase(config.databaseUrl, log, { connectionsMax: config.databaseConnections })
  const catalog = await loadCatalog(config.upstreams.bySlug, config.upstreams)
  warnOfUnknownVariables(config, catalog, log)
  const clock = new RedisClock(redis, log)
  clock.open()
  const announcements = new Announcements(config.redisUrls, log)
  const health = new HealthCache({ redis, announcements, clock, log }, sourcesOf(catalog))
  health.open()
  const settings = new SettingsSync({ config, log, catalog, db, redis })
  await settings.open()
  const telemetry = await openTelemetry(config, 'probe', {
    ...{ db, redis, log, catalog },
    inFlight: () => 0,
    now: () => clock.now(),
  })
  const now = () => clock.now()
  const callLog = openCallLog(config, { log, now, dropped: telemetry.droppedRows })
  const partitions = new CallLogPartitions({ db, log, days: config.callLog.days })
  partitions.open()
  const lanes = new LaneDirectory({ redis, now: () => clock.now(), log })
  await lanes.open()
  const queues = new CallQueues(redis, log, lanes.laneOf)
  const ownApis = new OwnApis({ config, log, catalog, settings, lanes })
  ownApis.open()
  const deps: ProbeDeps = {
    catalog,
    redis,
    db,
    queues,
    settings,
    ownApis,
    clock,
    health,
    telemetry,
    callLog,
    encryption: config.secrets.encryption,
    log,
    scheduled: new Map(),
    undrained: new Set(sourceNames(catalog)),
  }
  const timers = await startWork(deps)
  process.send?.({ ready: true })
  return {
    log,
    close: async () => {
      for (const timer of timers) clearInterval(timer)
      await partitions.close()
      await callLog.close()
      await ownApis.close()
      await settings.close()
      await telemetry.close()
      health.close()
      announcements.close()
      clock.close()
      lanes.close()
      await queues.close()
      await closeRedis(redis)
      await db.destroy()
    },
  }
})

/**
 * Begins all that this process does, at once or on a change, and at intervals.
 *
 * @returns the timers of the intervals
 */
async function startWork(deps: ProbeDeps): Promise<NodeJS.Timeout[]> {
  const { catalog, queues, settings, ownApis, health, log } = deps
  const schedule = new ProbeSchedule({ catalog, queues, log })
  const repairs = new SingleFlight<void>()
  const orLog = (scheduling: Promise<void>) =>
    void scheduling.catch((error) => log.warn({ err: error }, 'failed to schedule probes'))
  await schedule.repair()
  const endLate = () => void repairs.run('overdue', () => endOverdue(deps))
  endLate()
  const sealAnew = () => void repairs.run('reseal', () => reseal(deps))
  sealAnew()
  const validate = () => void repairs.run('validations', () => repairValidations(deps))
  validate()
  settings.onChange(() => orLog(schedule.follow()))
  ownApis.onChange(() => {
    health.follow(sourcesOf(catalog))
    orLog(schedule.follow())
  })
  health.onChange((slug) => {
    deps.undrained.add(slug)
    void drain(deps)
  })
  return [
    setInterval(() => void scheduleHalfOpenProbes(deps), TICK_MS),
    setInterval(() => void drain(deps), TICK_MS),
    setInterval(() => void recheckTroubled(deps), RECHECK_LOOK_MS),
    setInterval(endLate, OVERDUE_LOOK_MS),
    setInterval(() => {
      for (const slug of sourceNames(catalog)) deps.undrained.add(slug)
      orLog(schedule.repair())
      sealAnew()
      validate()
    }, REPAIR_EVERY_MS),
    setInterval(() => void deleteOldChanges(deps), CLEAN_EVERY_MS),
  ]
}

function sourceNames(catalog: Catalog): string[] {
  return sourcesOf(catalog).map(({ slug }) => slug)
}

/** A probe when the breaker allows its next attempt, so that it need not be a caller's. */
async function scheduleHalfOpenProbes({ catalog, queues, clock, health, scheduled, log }: ProbeDeps): Promise<void> {
  for (const api of sourcesOf(catalog)) {
    const { halfOpenAt, isSlotTaken } = health.ofUpstream(api.slug)
    if (halfOpenAt === undefined || isSlotTaken || !isTriedByProbe(api) || scheduled.get(api.slug) === halfOpenAt)
      continue
    scheduled.set(api.slug, halfOpenAt)
    const delayMs = Math.max(0, Math.ceil(halfOpenAt - clock.now()))
    // Several processes schedule it under the same name: one job.
    await enqueueProbe(queues, api.slug, { name: halfOpenProbe(halfOpenAt), delayMs }).catch((error) => {
      scheduled.delete(api.slug)
      log.debug({ err: error, slug: api.slug }, 'failed to schedule a half-open probe')
    })
  }
}

/**
 * An upstream in trouble without calls would stay so until its next probe. Open breakers have
 * half-open probes.
 */
async function recheckTroubled({ catalog, queues, clock, health, log }: ProbeDeps): Promise<void> {
  for (const api of sourcesOf(catalog)) {
    const { status, isOpen, since = 0, lastCallAt, lastProbeAt } = health.ofUpstream(api.slug)
    if (status === 'Healthy' || isOpen || !api.enabled) continue
    const triedAt = Math.max(lastCallAt, lastProbeAt)
    const pauseMs =
      probeSlowdown(api) * recheckPauseMs({ isRare: !isTriedByProbe(api), troubledForMs: triedAt - since })
    if (clock.now() - triedAt < pauseMs) continue
    await enqueueProbe(queues, api.slug, { name: `recheck-${Math.floor(clock.now() / RECHECK_MS)}` }).catch((error) =>
      log.debug({ err: error, slug: api.slug }, 'failed to schedule a probe'),
    )
  }
}

function isTriedByProbe(api: Api): boolean {
  return api.enabled && probeEverySeconds(api) <= HALF_OPEN_PROBE_SECONDS_MAX
}

/**
 * Seals stored secrets anew that an earlier ENCRYPTION_KEY sealed. Processes that are not restarted
 * yet may go on sealing by the earlier key, so it looks again.
 */
async function reseal({ db, encryption, log }: ProbeDeps): Promise<void> {
  if (encryption.length < 2) return
  try {
    const { resealed, unreadable } = await resealAll(db, encryption)
    if (resealed > 0) log.info({ resealed, unreadable }, 'stored secrets are sealed by the current ENCRYPTION_KEY')
  } catch (error) {
    log.warn({ err: error }, 'failed to reseal stored secrets; the next attempt is in a minute')
  }
}

/** What fails is tried again with the next look. */
async function repairValidations(deps: ProbeDeps): Promise<void> {
  await queueOverdueValidations(deps).catch((error) =>
    deps.log.warn({ err: error }, 'failed to queue validations of provider keys'),
  )
}

/** What fails is tried again with the next tick. */
async function drain({ redis, db, undrained, log }: ProbeDeps): Promise<void> {
  for (const slug of [...undrained]) {
    if (redis.status !== 'ready') return
    // First, because a change announced meanwhile puts it back.
    undrained.delete(slug)
    await drainHealthChanges(redis, db, slug).catch((error) => {
      undrained.add(slug)
      log.warn({ err: error, slug }, 'failed to write health changes')
    })
  }
}

/** What fails is tried again with the next look. */
async function endOverdue(deps: ProbeDeps): Promise<void> {
  for (const lane of deps.queues.queuesOf(deps.catalog.keys())) {
    if (deps.redis.status !== 'ready') return
    await endOverdueCalls(deps, lane).catch((error) =>
      deps.log.warn({ err: error, lane: lane.name }, 'failed to end overdue calls'),
    )
  }
}

async function deleteOldChanges({ db, log }: ProbeDeps): Promise<void> {
  await deleteOldHealthChanges(db).catch((error) => log.warn({ err: error }, 'failed to delete old health changes'))
}
