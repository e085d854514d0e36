import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { GatheredLines } from '../src/log.ts'

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
