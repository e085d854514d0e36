import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { countCall, EndedCalls } from '../../src/telemetry/ended-call.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { MinuteStats } from '../../src/telemetry/minute-stats.ts'
import { readMinute } from '../support/minutes.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')

test('calls that ended are counted by the time their metrics are read, each once', async () => {
  const metrics = createMetrics('web', { inFlight: () => 0, busy: () => 0 })
  const endedCalls = new EndedCalls(metrics, new MinuteStats({ redis, log, now: Date.now }))
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const call = { slug: 'weather', mode: 'live', status: 200, accountId: 'account', times, totalMs: 4 } as const
  const figure = async (line: string) => {
    const text = await metrics.registry.metrics()
    return Number(
      text
        .split('\n')
        .find((one) => one.startsWith(line))
        ?.split(' ')
        .at(-1) ?? Number.NaN,
    )
  }
  const seconds = 'agw_call_duration_seconds_count{'
  const calls = 'agw_calls_total{'
  endedCalls.add(call, { isEndedByWorker: false })
  assert.equal(await figure(seconds), 1)
  assert.equal(await figure(calls), 1)
  // A worker counts an asynchronous call. How long its caller waited for this answer is measured
  // here all the same.
  endedCalls.add(call, { isEndedByWorker: true })
  for (let index = 0; index < 200; index += 1) endedCalls.add(call, { isEndedByWorker: false })
  assert.equal(await figure(seconds), 202)
  assert.equal(await figure(calls), 201)
  endedCalls.add({ ...call, mode: 'test' }, { isEndedByWorker: false })
  assert.equal(await figure(seconds), 202)
})

test('neither a stored answer nor a connection that failed is measured as a fast upstream', async () => {
  // A minute of its own.
  const now = 600_000_000
  const minutes = new MinuteStats({ redis, log, now: () => now })
  const metrics = createMetrics('web', { inFlight: () => 0, busy: () => 0 })
  const call = { slug: 'news', mode: 'live', accountId: 'account', totalMs: 4 } as const
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 5, attempts: 3 }
  const failed = { ...call, status: 502, code: 'UPSTREAM_ERROR', times } as const
  countCall({ metrics, minutes }, { ...failed, reach: 'maybe-sent' })
  countCall({ metrics, minutes }, { ...call, status: 200, times: { ...times, attempts: 0 }, reach: 'unsent' })
  const timesOf = async () =>
    (await metrics.upstreamSeconds.get()).values.find(({ metricName }) => metricName?.endsWith('_count'))?.value ?? 0
  await minutes.flush()
  assert.deepEqual([await timesOf(), (await readMinute(redis, now)).upstream.get('news')], [0, undefined])
  // A source that answers slowly, or fails by itself, took that time.
  countCall({ metrics, minutes }, { ...failed, reach: 'answered' })
  countCall({ metrics, minutes }, { ...failed, code: 'UPSTREAM_TIMEOUT', reach: 'sent' })
  countCall({ metrics, minutes }, { ...call, status: 200, times, reach: 'answered' })
  await minutes.flush()
  assert.equal(await timesOf(), 3)
  assert.equal(
    (await readMinute(redis, now)).upstream.get('news')?.reduce((sum, count) => sum + count, 0),
    3,
  )
})

test('an answer counts as stale if its time was over when it was served, even if it is being refreshed', async () => {
  const minutes = new MinuteStats({ redis, log, now: Date.now })
  const resultOf = async (cacheStatus: string) => {
    const metrics = createMetrics('web', { inFlight: () => 0, busy: () => 0 })
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const call = { slug: 'weather', mode: 'live', status: 200, accountId: 'account', totalMs: 4 } as const
    countCall({ metrics, minutes }, { ...call, times, cacheStatus })
    return (await metrics.cache.get()).values.map(({ labels }) => labels.result).join()
  }
  const results = {
    'agw; hit; ttl=240': 'hit',
    'agw; hit; ttl=0': 'hit',
    'agw; hit; ttl=-1; detail=revalidating': 'stale',
    'agw; hit; ttl=-90; detail=upstream-down': 'stale',
    'agw; hit; ttl=-90; detail=cap-exhausted': 'stale',
    'agw; fwd=stale; ttl=-90; detail=upstream-failed': 'stale',
    'agw; fwd=stale; stored': 'miss',
    'agw; fwd=stale; collapsed': 'miss',
    'agw; fwd=miss; stored': 'miss',
    'agw; fwd=miss': 'miss',
  }
  for (const [cacheStatus, result] of Object.entries(results))
    assert.equal(await resultOf(cacheStatus), result, cacheStatus)
})

test('a call with a test key does not count as a call of the fleet, even if it was refused before it had a job', async () => {
  const now = Date.now()
  const minutes = new MinuteStats({ redis, log, now: () => now })
  const metrics = createMetrics('web', { inFlight: () => 0, busy: () => 0 })
  const refused = { slug: 'trivia', status: 503, code: 'API_PAUSED', accountId: 'account', totalMs: 4 } as const
  countCall({ metrics, minutes }, { ...refused, mode: 'test' })
  countCall({ metrics, minutes }, { ...refused, mode: undefined })
  countCall({ metrics, minutes }, { ...refused, mode: 'live' })
  await redis.ping()
  await minutes.flush()
  const { calls } = await readMinute(redis, now)
  assert.deepEqual([...calls], [['trivia|API_PAUSED', 2]])
  const counted = (await metrics.calls.get()).values.map(({ labels, value }) => [labels.mode, value])
  assert.deepEqual(counted, [
    ['test', 1],
    ['-', 1],
    ['live', 1],
  ])
})
