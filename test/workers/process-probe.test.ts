import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { applySettings, Catalog, type OperatorSettings } from '../../src/catalog/catalog.ts'
import { HANGING_MS } from '../../src/health/health-thresholds.ts'
import { awaitProbeOutcome, enqueueProbe } from '../../src/queue/probe-job.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { processProbe } from '../../workers/jobs/process-probe.ts'
import { until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

/** The outcome of a probe whose time is over before it has a permit. */
async function outcomeWithoutPermit(t: TestContext, settings: OperatorSettings) {
  const { deps, api } = await openWorkerParts(t)
  const { slug } = api
  await enqueueProbe(deps.queues, slug, { name: 'probe', isForced: true, outcomeId: 'outcome' })
  const job = (await deps.queues.of(slug).getJob(`${slug}-probe`)) ?? assert.fail()
  t.mock.method(AbortSignal, 'timeout', () => AbortSignal.abort())
  applySettings(api, settings)
  await processProbe(deps, job, new AbortController().signal)
  return await awaitProbeOutcome(deps.redis, { slug, id: 'outcome' }, 10_000)
}

test('a probe that gets no permit in time says that there was no slot of the cap', async (t) => {
  const { code, words } = (await outcomeWithoutPermit(t, {})) ?? assert.fail()
  assert.deepEqual([code, words], ['NO_PERMIT', 'no slot of the cap in time'])
})

test('a probe of an endpoint whose recorded call cannot be made sends nothing and counts for nothing', async (t) => {
  const { deps, api } = await openWorkerParts(t)
  const own = { ...api, upstream: { ...api.upstream, own: { digest: 'd', mayBePrivate: true } } }
  const [path = ''] = api.endpoints.keys()
  const impossible: [typeof api, string][] = [
    [own, path],
    [api, '/no-such-endpoint'],
  ]
  for (const [index, [known, endpoint]] of impossible.entries()) {
    await enqueueProbe(deps.queues, api.slug, { name: `members-${index}`, isForced: true, endpoint })
    const job = (await deps.queues.of(api.slug).getJob(`${api.slug}-members-${index}`)) ?? assert.fail()
    const catalog = new Catalog([[api.slug, known]])
    await processProbe({ ...deps, catalog }, job, new AbortController().signal)
  }
  assert.equal(await deps.redis.exists(upstreamKeys.health(api.slug)), 0)
})

test('a probe that a pause of the API holds until its time is over says that the API is paused', async (t) => {
  const { code, words } = (await outcomeWithoutPermit(t, { pausedMode: 'hold' })) ?? assert.fail()
  assert.deepEqual([code, words], ['API_PAUSED', 'the API is paused and holds its probes'])
})

test('while a breaker is open, a probe that should decide whether it opens is not sent, and a probe of an operator is', async (t) => {
  const upstream = await startUpstreamServer()
  t.after(() => upstream.close())
  upstream.play('encyclopedia', () => recorded('encyclopedia'))
  const { deps, api } = await openWorkerParts(t, upstream.environment('encyclopedia'))
  const { slug } = api
  const open = { state: 'Down', open: '1', trialAt: `${Date.now() + 60_000}`, trialBy: '', pause: '60000', good: 0 }
  await deps.redis.hset(upstreamKeys.health(slug), open)
  await deps.redis.publish(channels.health, slug)
  await until(() => deps.health.ofUpstream(slug).isOpen)
  const probe = async (name: string, skipsPause: boolean) => {
    await enqueueProbe(deps.queues, slug, { name, isForced: true, skipsPause })
    const job = (await deps.queues.of(slug).getJob(`${slug}-${name}`)) ?? assert.fail()
    await processProbe(deps, job, new AbortController().signal)
    return upstream.arrivals.length
  }
  assert.equal(await probe('confirm', false), 0)
  assert.equal(await probe('operator', true), 1)
})

test('a probe whose answer comes late, after the probe counted as hanging, says that the source answered', async (t) => {
  const upstream = await startUpstreamServer()
  t.after(() => upstream.close())
  upstream.play('encyclopedia', async () => {
    await delay(HANGING_MS + 300)
    return recorded('encyclopedia')
  })
  const { deps, api } = await openWorkerParts(t, upstream.environment('encyclopedia'))
  const { slug } = api
  await enqueueProbe(deps.queues, slug, { name: 'late', isForced: true, outcomeId: 'late' })
  const job = (await deps.queues.of(slug).getJob(`${slug}-late`)) ?? assert.fail()
  await processProbe(deps, job, new AbortController().signal)
  const { status, code, words } = (await awaitProbeOutcome(deps.redis, { slug, id: 'late' }, 10_000)) ?? assert.fail()
  assert.deepEqual([status, code], [200, null])
  assert.match(words, /^HTTP 200 in \d+ ms$/)
  const { failedWords } = await deps.redis.hgetall(upstreamKeys.health(slug))
  assert.match(failedWords ?? '', /no answer in/, 'it counted as hanging')
})
