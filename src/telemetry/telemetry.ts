import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { DroppedRows } from './dropped-rows.ts'
import { EndedCalls } from './ended-call.ts'
import { startHeartbeat } from './heartbeat.ts'
import { collectWhenIdle } from './idle-collection.ts'
import { knownApis } from './known-apis.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { serveMetrics } from './metrics-server.ts'
import { MinuteStats } from './minute-stats.ts'
import { Readiness } from './readiness.ts'
import { openTracing, type Tracing } from './tracing.ts'

/** Everything that one process reports about itself: metrics, traces, counts, heartbeat. */
export interface Telemetry {
  metrics: Metrics
  /** Undefined if nothing is traced. */
  tracing: Tracing | undefined
  minutes: MinuteStats
  /** Counts calls that have ended; used by API nodes. */
  endedCalls: EndedCalls
  readiness: Readiness
  /** Counts rows that this process did not write to the log of calls. */
  droppedRows: DroppedRows
  /** Tells the other processes that this process is closing. */
  drain: () => void
  close: () => Promise<void>
}

export interface TelemetryDeps {
  db: Db
  redis: RedisConnection
  log: Log
  /** Returns the present load of the process. */
  inFlight: () => number
  /** Slugs of the upstreams that the worker serves; absent: all. */
  serves?: string[] | undefined
  catalog: Catalog
  /** Redis' time, milliseconds since the epoch. */
  now: () => number
}

/** Opens the telemetry of a process; `kind` is web, worker, probe or ops. */
export async function openTelemetry(
  config: Config,
  kind: string,
  { db, redis, log, inFlight, serves, catalog, now }: TelemetryDeps,
): Promise<Telemetry> {
  const tracing = await openTracing(config, { process: kind, log })
  const minutes = new MinuteStats({ redis, now, log })
  minutes.open()
  const readiness = new Readiness({ db, redis })
  const metrics = createMetrics(kind, { inFlight, busy: () => heartbeat.busy() })
  const droppedRows = new DroppedRows(metrics.callLogDropped, now)
  const apis = () => knownApis(catalog)
  const refused = () => catalog.refused
  const heartbeat = startHeartbeat({ redis, kind, inFlight, serves, apis, refused, droppedRows, now, log })
  const endedCalls = new EndedCalls(metrics, minutes)
  const stopServing = await serveMetrics(config.http, { registry: metrics.registry, readiness, log })
  const stopCollecting = collectWhenIdle(log)
  return {
    metrics,
    tracing,
    minutes,
    endedCalls,
    readiness,
    droppedRows,
    drain: () => {
      readiness.drain()
      heartbeat.drain()
    },
    close: async () => {
      stopServing()
      stopCollecting()
      await heartbeat.close()
      endedCalls.flush()
      await minutes.close()
      await tracing?.close()
    },
  }
}
