import type { ResponseCache } from '../../src/cache/response-cache.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import type { SignupPolicy } from '../../src/config.ts'
import type { Db } from '../../src/db/database.ts'
import type { ReplyOutbox } from '../../src/queue/reply.ts'
import type { MemoryHeadroom } from '../../src/redis/memory-headroom.ts'
import type { CallLogWriter } from '../../src/telemetry/call-log-writer.ts'
import type { RequestCoalescer } from '../cache/request-coalescer.ts'
import type { ProviderKeys } from '../upstream/provider-keys.ts'
import type { UpstreamDeps } from '../upstream/upstream-deps.ts'
import type { HeldCalls } from './held-calls.ts'
import type { RunningCalls } from './running-calls.ts'

/** Everything long-lived in a worker that its jobs need. */
export interface WorkerDeps extends UpstreamDeps {
  catalog: Catalog
  db: Db
  signup: SignupPolicy
  cache: ResponseCache
  coalescer: RequestCoalescer
  providerKeys: ProviderKeys
  held: HeldCalls
  running: RunningCalls
  replies: ReplyOutbox
  headroom: MemoryHeadroom
  callLog: Pick<CallLogWriter, 'write'>
}
