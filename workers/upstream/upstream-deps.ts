import type { Dispatcher } from 'undici'
import type { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { HealthCache } from '../../src/health/health-cache.ts'
import type { Log } from '../../src/log.ts'
import type { CallQueues } from '../../src/queue/call-queue.ts'
import type { CapBucket } from '../../src/queue/wait-queue-entry.ts'
import type { RedisClock } from '../../src/redis/clock.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'
import type { PermitClient } from '../permits/permit-client.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { RetryBudget } from './retry.ts'
import type { SuccessBatcher } from './success-batcher.ts'
import type { UnansweredRequests } from './unanswered-requests.ts'

/** What sending requests to upstreams needs of a worker. */
export interface UpstreamDeps {
  redis: RedisConnection
  log: Log
  clock: RedisClock
  health: HealthCache
  telemetry: Telemetry
  successes: SuccessBatcher
  unanswered: UnansweredRequests
  caps: UpstreamCaps
  /** Queues for probes that decide whether a breaker opens or closes. */
  queues: CallQueues
  answerMemory: AnswerMemory
  /** The contact for the `User-Agent`. */
  contact: string
  /** Longest time of an attempt, even if the upstream's file allows more, milliseconds. */
  attemptTimeoutMsMax: number
  clientOf: (api: Api, bucket: CapBucket) => Dispatcher
  permitClientOf: (api: Pick<Api, 'slug'>, bucket: CapBucket) => PermitClient
  budgetOf: (api: Api) => RetryBudget
}
