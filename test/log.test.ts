import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { BatchedLog, flushLogs, GatheredLines } from '../src/log.ts'

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

test('an output writes its lines together a moment after the first, in their order, and nothing while there are none', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-log-'))
  t.after(() => rm(folder, { recursive: true }))
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const writes = t.mock.method(fs, 'write').mock
  const file = join(folder, 'log')
  const output = new GatheredLines(file)
  t.mock.timers.tick(10_000)
  assert.equal(writes.callCount(), 0)
  for (const line of ['one\n', 'two\n', 'three\n']) output.write(line)
  assert.equal(writes.callCount(), 0)
  t.mock.timers.tick(50)
  await new Promise<void>((resolve) => output.flush(() => resolve()))
  assert.equal(await readFile(file, 'utf8'), 'one\ntwo\nthree\n')
  const { length } = writes.calls.filter(({ arguments: [, text] }) => String(text) !== '')
  assert.equal(length, 1)
})
