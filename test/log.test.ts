import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { BatchedLog, flushLogs } from '../src/log.ts'

const openLog = (level: string) => {
  const written: string[] = []
  const options = { level, base: { process: 'web' }, formatters: { level: (label: string) => ({ level: label }) } }
  const log = new BatchedLog(pino(options, { write: (lines) => void written.push(lines) }))
  const entries = () =>
    written
      .join('')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { log, written, entries }
}

test('lines of a batched log are handed over together, in their order, with what every line of the log has', async () => {
  const { log, written, entries } = openLog('info')
  log.info({ slug: 'weather', status: 200 }, 'call')
  log.info({ slug: 'quakes', status: 503 }, 'call')
  assert.deepEqual(written, [])
  await flushLogs()
  assert.equal(written.length, 1)
  assert.deepEqual(
    entries().map(({ time, ...entry }) => ({ ...entry, isTime: Date.parse(time) > 0 })),
    [
      { level: 'info', process: 'web', slug: 'weather', status: 200, msg: 'call', isTime: true },
      { level: 'info', process: 'web', slug: 'quakes', status: 503, msg: 'call', isTime: true },
    ],
  )
})

test('a batched log keeps a bounded number of lines back, and writes none below its level', () => {
  const { log, written, entries } = openLog('info')
  for (let index = 0; index < 1_000; index += 1) log.info({ index }, 'call')
  const handedOver = entries()
  assert.ok(handedOver.length > 900, `${handedOver.length}`)
  assert.ok(written.length < 100, `${written.length}`)
  assert.deepEqual(
    handedOver.map(({ index }) => index),
    handedOver.map((_, index) => index),
  )
  const silent = openLog('warn')
  for (let index = 0; index < 1_000; index += 1) silent.log.info({ index }, 'call')
  assert.deepEqual(silent.written, [])
})
