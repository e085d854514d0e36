import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shareProcesses } from './shared-processes.ts'
import { ROOT } from './sources.ts'

it('each test file is in the list of the processes that share files, or has a process of its own', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-shared-'))
  t.after(() => rm(folder, { recursive: true }))
  const files = globSync('test/**/*.test.ts', { cwd: ROOT })
  const runs = shareProcesses(files, folder, 3)
  const shared: string[] = JSON.parse(readFileSync(join(folder, 'shared-files.json'), 'utf8'))
  const members = shared.map((url) => relative(ROOT, fileURLToPath(url)))
  const alone = runs.filter((file) => !file.startsWith(folder))
  assert.equal(runs.length - alone.length, 3)
  assert.deepEqual([...alone, ...members].sort(), files.sort())
  for (const name of ['redis/tls', 'http/server/pipeline']) assert.ok(alone.includes(`test/${name}.test.ts`), name)
  for (const name of ['caps/read', 'system/processes']) assert.ok(members.includes(`test/${name}.test.ts`), name)
})
