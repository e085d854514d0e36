import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { waitQueueIdentity } from '../../src/queue/wait-queue-entry.ts'
import type { CachedOutcome } from '../../workers/cache/cached-call.ts'
import type { ProcessorDeps } from '../../workers/jobs/process-call.ts'
import { runCall } from '../../workers/jobs/run-call.ts'
import { DEADLINE_PASSED } from '../../workers/upstream/call-end.ts'
import { isFailure } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

/** Runs a call as its job does, for the first time. */
async function run(
  deps: ProcessorDeps,
  call: CallJob,
  signal: AbortSignal = AbortSignal.timeout(10_000),
): Promise<CachedOutcome> {
  return await runCall(deps, call, {
    ...{ times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }, progress: {}, isSecondRun: false },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal,
  })
}

test('a call that was to share an answer and needs a permit after all is refused at once where its place is too late', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [{ member: 'other|sent', tag: 0 }]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  // Another call has the next place, so that the one after it is to be judged.
  const entry = { callId: 'next', accountId: 'other', isAsync: false, weight: 1, slug: api.slug, bucket: SHARED_BUCKET }
  assert.ok('tag' in (await cap.joinWaitQueue(entry, deps.clock.now() + 100_000)))
  const coalesced = cacheKeys(endpoint, callOf(), SHARED_BUCKET)?.coalesced ?? assert.fail()
  // Its leader is gone with its place, or with a worker that died.
  for (const { isNamed, timeMs, leastMs } of [
    { isNamed: false, timeMs: 90_000, leastMs: 100_000 },
    { isNamed: true, timeMs: 30_000, leastMs: 45_000 },
  ]) {
    if (isNamed) await deps.redis.set(coalesced, 'other|gone', 'PX', 60_000)
    const { outcome } = await run(deps, callOf({ ticket: { tag: 0.5, weight: 1, isFollower: true }, timeMs }))
    assert.ok(isFailure(outcome))
    const { code, isRefused, retryAfterMs = 0 } = outcome
    assert.deepEqual({ code, isRefused }, { code: 'UPSTREAM_CAP_EXHAUSTED', isRefused: true })
    assert.ok(retryAfterMs > leastMs && retryAfterMs < leastMs + 25_000, `${retryAfterMs} ms`)
  }
})

test('a call that is answered with a stale answer keeps its place until it has refreshed it, or no longer tries to', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [{ member: 'other|sent', tag: 0 }]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const call = callOf({ timeMs: 300_000 })
  const coalescedKey = cacheKeys(endpoint, call, SHARED_BUCKET)?.coalesced
  const entry = { ...waitQueueIdentity(call), slug: api.slug, bucket: SHARED_BUCKET, weight: 1, coalescedKey }
  // Redis has the script: a command that leaves is done before the next one on this connection.
  await cap.leaveWaitQueue(entry)
  const place = await cap.joinWaitQueue(entry, call.deadline)
  assert.ok('tag' in place)
  const key = cacheKeys(endpoint, call, SHARED_BUCKET)?.entry ?? assert.fail()
  const times = {
    storedAt: deps.clock.now() - 2_000,
    freshMs: 1_000,
    staleWhileRevalidateMs: 300_000,
    staleIfErrorMs: 0,
  }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  await deps.cache.store(origin, key, { ...times, body: Buffer.from('{}') })
  const ending = new AbortController()
  const { outcome, afterwards } = await run(deps, { ...call, ticket: { tag: place.tag, weight: 1 } }, ending.signal)
  assert.equal(isFailure(outcome), false)
  assert.equal((await cap.read()).ahead, 1)
  const refreshed = afterwards?.() ?? assert.fail()
  ending.abort(DEADLINE_PASSED)
  await assert.rejects(refreshed)
  await until(async () => (await cap.read()).ahead === 0)
})
