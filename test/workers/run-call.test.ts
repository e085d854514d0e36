import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { loadConfig } from '../../src/config.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createLog } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { keys } from '../../src/redis/keys.ts'
import { runCall } from '../../workers/jobs/run-call.ts'
import { isFailure } from '../../workers/upstream/outcome.ts'
import { openWorkerContext } from '../../workers/worker-context.ts'
import { testSecrets } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

const SLUG = 'encyclopedia'
const PARAMETERS = { title: 'Earth' }

test('a call that was to share an answer and needs a permit after all is refused at once where its place is too late', async (t) => {
  const services = await startServices()
  await migrate(services.databaseUrl)
  const { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL } = services
  const config = loadConfig({ ...testSecrets(), DATABASE_URL, REDIS_URL })
  const { deps, close } = await openWorkerContext(config, createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(async () => {
    await close()
    await services.stop()
  })
  await deps.redis.set(keys.rememberedSince, 0)
  const api = deps.catalog.get(SLUG) ?? assert.fail()
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const { endpoint } = api.endpoints.get('/summary') ?? assert.fail()
  const cap = deps.caps.of(api, SHARED_BUCKET)
  const queue = async (id: string, timeMs: number) =>
    await cap.joinWaitQueue(
      { callId: id, accountId: 'other', isAsync: false, weight: 1, slug: SLUG, bucket: SHARED_BUCKET },
      deps.clock.now() + timeMs,
    )
  const waiters = [{ member: 'other|sent', tag: 0 }]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  // Another call has the next place, so that the one after it is to be judged.
  assert.ok('tag' in (await queue('next', 100_000)))
  const run = async (timeMs: number) => {
    const now = deps.clock.now()
    const call: CallJob = {
      ...{ v: 1, id: 'call_follower', accountId: 'account', mode: 'live', slug: SLUG, endpoint: '/summary' },
      ...{ parameters: PARAMETERS, extra: [], raw: false, isAsync: false, replyTo: '' },
      ...{ ticket: { tag: 0.5, weight: 1, isFollower: true }, enqueuedAt: Math.floor(now) },
      deadline: Math.floor(now + timeMs),
    }
    const { outcome } = await runCall(deps, call, {
      ...{ times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }, progress: {}, isSecondRun: false },
      remainingMs: () => call.deadline - deps.clock.now(),
      signal: AbortSignal.timeout(10_000),
    })
    return outcome
  }
  const of = { slug: SLUG, endpoint: '/summary', parameters: PARAMETERS, extra: [], raw: false, accountId: 'account' }
  const coalesced = cacheKeys(endpoint, of, SHARED_BUCKET)?.coalesced ?? assert.fail()
  // Its leader is gone with its place, or with a worker that died.
  for (const { isNamed, timeMs, leastMs } of [
    { isNamed: false, timeMs: 90_000, leastMs: 100_000 },
    { isNamed: true, timeMs: 30_000, leastMs: 45_000 },
  ]) {
    if (isNamed) await deps.redis.set(coalesced, 'other|gone', 'PX', 60_000)
    const outcome = await run(timeMs)
    assert.ok(isFailure(outcome))
    const { code, isRefused, retryAfterMs = 0 } = outcome
    assert.deepEqual({ code, isRefused }, { code: 'UPSTREAM_CAP_EXHAUSTED', isRefused: true })
    assert.ok(retryAfterMs > leastMs && retryAfterMs < leastMs + 25_000, `${retryAfterMs} ms`)
  }
})
