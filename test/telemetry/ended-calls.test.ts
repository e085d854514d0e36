import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { EndedCalls } from '../../src/telemetry/ended-calls.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { MinuteStats } from '../../src/telemetry/minute-stats.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')

test('calls that ended are counted by the time their metrics are read, each once', async () => {
  const metrics = createMetrics('web', { inFlight: () => 0, busy: () => 0 })
  const endedCalls = new EndedCalls(metrics, new MinuteStats({ redis, log, now: Date.now }))
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const call = { slug: 'weather', mode: 'live', status: 200, code: 'OK', accountId: 'account', times } as const
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
  endedCalls.add({ call, answerMs: 4, isCountedHere: true })
  assert.equal(await figure(seconds), 1)
  assert.equal(await figure(calls), 1)
  // Its worker counts an asynchronous call. How long its caller waited for this answer is measured
  // here all the same.
  endedCalls.add({ call, answerMs: 4, isCountedHere: false })
  for (let index = 0; index < 200; index += 1) endedCalls.add({ call, answerMs: 4, isCountedHere: true })
  assert.equal(await figure(seconds), 202)
  assert.equal(await figure(calls), 201)
  endedCalls.add({ call: { ...call, mode: 'test' }, answerMs: 4, isCountedHere: true })
  assert.equal(await figure(seconds), 202)
})
