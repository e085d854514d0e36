import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Supervisor } from '../../src/local/supervisor.ts'
import { until } from '../support/gateway.ts'

async function startOne(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'agw-supervisor-'))
  const crashFile = join(folder, 'crash')
  const lines: string[] = []
  const supervisor = new Supervisor((_label, line) => void lines.push(line))
  t.after(async () => {
    await supervisor.end()
    await rm(folder, { recursive: true })
  })
  const up = () => lines.filter((line) => line.startsWith('up '))
  const deaths = () => lines.filter((line) => line.startsWith('ended '))
  await supervisor.start({
    kind: 'probe',
    label: 'one',
    entry: 'test/support/started-process.ts',
    environment: { CRASH_FILE: crashFile },
  })
  await until(() => up().length === 1)
  return { supervisor, crashFile, up, deaths }
}

test('processes whose code changed are started again at once, however often it changes', async (t) => {
  const { supervisor, up, deaths } = await startOne(t)
  for (let changes = 1; changes <= 3; changes += 1) {
    supervisor.restart()
    await until(() => up().length === changes + 1)
  }
  assert.equal(new Set(up()).size, 4)
  assert.deepEqual(deaths(), [])
})

test('a process that dies is started again after pauses that double, and at once when its code changed', async (t) => {
  const { supervisor, crashFile, up, deaths } = await startOne(t)
  await writeFile(crashFile, '')
  const kill = (line: string | undefined) => process.kill(Number(line?.slice('up '.length)), 'SIGKILL')
  kill(up()[0])
  await until(() => deaths().length === 3)
  assert.deepEqual(deaths(), [
    'ended (SIGKILL); starting again in 500 ms',
    'ended (exit code 3); starting again in 1000 ms',
    'ended (exit code 3); starting again in 2000 ms',
  ])
  await rm(crashFile)
  supervisor.restart()
  await until(() => up().length === 2)
  kill(up()[1])
  await until(() => deaths().length === 4)
  assert.equal(deaths()[3], 'ended (SIGKILL); starting again in 500 ms')
})

test('a process that the machine refuses to start is started again after a pause, and the others run on', async (t) => {
  const { up, deaths } = await startOne(t)
  const { execPath } = process
  t.after(() => {
    process.execPath = execPath
  })
  process.execPath = '/no/such/node'
  process.kill(Number(up()[0]?.slice('up '.length)), 'SIGKILL')
  await until(() => deaths().length === 2)
  process.execPath = execPath
  assert.equal(deaths()[1], 'ended (spawn /no/such/node ENOENT); starting again in 1000 ms')
  await until(() => up().length === 2)
})

test('a process that is not ready in time is named', async (t) => {
  const supervisor = new Supervisor(() => undefined, { readyMsMax: 200 })
  t.after(() => supervisor.end())
  const plan = { kind: 'probe', label: 'slow', entry: 'test/support/started-process.ts' } as const
  await assert.rejects(
    supervisor.start({ ...plan, environment: { NEVER_READY: 'yes' } }),
    (error) => error instanceof Error && error.message === 'slow was not ready within 0.2 s',
  )
})
