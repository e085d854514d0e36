import type { Dispatcher } from 'undici'
import type { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { HealthCache } from '../../src/health/health-watch.ts'
import type { Log } from '../../src/log.ts'
import type { CallQueues } from '../../src/queue/call-queue.ts'
import type { CapBucket } from '../../src/queue/wait-queue-entry.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'
import type { PermitClient } from '../permits/permit-client.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { RetryBudget } from './retry.ts'
import type { SuccessBatcher } from './success-batcher.ts'
import type { UnansweredRequests } from './unanswered-requests.ts'

/** The part of a worker that sends requests to upstreams. */
export interface UpstreamDeps {
  redis: RedisConnection
  log: Log
  health: HealthCache
  telemetry: Telemetry
  successes: SuccessBatcher
  unanswered: UnansweredRequests
  caps: UpstreamCaps
  /** For probes that decide whether a breaker opens, or closes. */
  queues: CallQueues
  answerMemory: AnswerMemory
  /** Goes into the `User-Agent`. */
  contact: string
  /** Whatever the upstream's file says, milliseconds. */
  attemptTimeoutMsMax: number
  clientOf: (api: Api, bucket: CapBucket) => Dispatcher
  permitClientOf: (api: Pick<Api, 'slug'>, bucket: CapBucket) => PermitClient
  budgetOf: (api: Api) => RetryBudget
}
