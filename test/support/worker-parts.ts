import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { ReplyInbox } from '../../src/queue/reply.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { openRedis } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { type Failure, isFailure, type Outcome } from '../../workers/upstream/outcome.ts'
import { openWorkerContext } from '../../workers/worker-context.ts'
import { testSecrets } from './gateway.ts'
import { startServices } from './services.ts'

const SLUG = 'encyclopedia'

/**
 * Opens the parts of a worker that takes no jobs by itself. Returns the parts, the replies that
 * they send, and a function that makes calls of a single API.
 */
export async function openWorkerParts(t: TestContext, environment: Record<string, string> = {}) {
  const services = await startServices()
  const { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL } = services
  const config = loadConfig({ ...testSecrets(), DATABASE_URL, REDIS_URL, ...environment })
  const log = createLog({ level: 'silent', pretty: false }, 'test')
  const { deps, close } = await openWorkerContext(config, log)
  const replies = new ReplyInbox(openRedis(config.redisUrls, 'blocking', log), deps.redis, log)
  replies.open()
  t.after(async () => {
    await replies.close()
    await close()
    await services.stop()
  })
  // With this key Redis seems to have lost nothing, so caps start with an empty past.
  await deps.redis.set(keys.rememberedSince, 0)
  const api = deps.catalog.get(SLUG) ?? assert.fail()
  const { declaration: endpoint } = api.endpoints.get('/summary') ?? assert.fail()
  const cap = deps.caps.of(api, SHARED_BUCKET)
  /** Makes a call without a ticket, as its node queues it. */
  const callOf = ({ timeMs = 30_000, ...fields }: Partial<CallJob> & { timeMs?: number } = {}): CallJob => {
    const now = Math.floor(deps.clock.now())
    const id = `call_${randomUUID().replaceAll('-', '')}`
    return {
      ...{ v: 1, id, accountId: 'account', mode: 'live', slug: SLUG, endpoint: '/summary' },
      ...{ parameters: { title: 'Earth' }, extra: [], raw: false, isAsync: false, replyTo: replies.stream },
      ...{ limitsAcquiredAt: now, deadline: now + timeMs },
      ...fields,
    }
  }
  return { config, deps, replies, api, endpoint, cap, callOf }
}

/** The failure of a call that must not be answered. */
export function failureOf(outcome: Outcome): Failure {
  assert.ok(isFailure(outcome), 'the call was answered')
  return outcome
}
