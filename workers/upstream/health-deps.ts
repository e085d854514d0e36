import type { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { HealthCache } from '../../src/health/health-watch.ts'
import type { Log } from '../../src/log.ts'
import type { CallQueues } from '../../src/queue/call-queue.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'
import type { UnansweredRequests } from './hanging.ts'
import type { SuccessBatcher } from './success-batcher.ts'

export interface HealthDeps {
  redis: RedisConnection
  health: HealthCache
  telemetry: Telemetry
  successes: SuccessBatcher
  unanswered: UnansweredRequests
  caps: UpstreamCaps
  /** For probes that decide whether a breaker opens, or closes. */
  queues: CallQueues
  log: Log
}
