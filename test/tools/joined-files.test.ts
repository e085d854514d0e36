import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { joinQuickFiles } from './joined-files.ts'
import { ROOT } from './sources.ts'

it('each test file runs once: alone, or in a process with others if it is quick and starts no process or browser', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-joined-'))
  t.after(() => rm(folder, { recursive: true }))
  const files = globSync('test/**/*.test.ts', { cwd: ROOT })
  const runs = joinQuickFiles(
    files.map((file) => ({ file, seconds: file.includes('fairness') ? 31 : 5 })),
    folder,
  ).map(({ file }) => file)
  const joined = runs.filter((file) => file.startsWith(folder))
  const members = joined.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^import '(.+)'$/gm)].map(([, url = '']) =>
      relative(ROOT, fileURLToPath(url)),
    ),
  )
  const alone = runs.filter((file) => !joined.includes(file))
  assert.deepEqual([...alone, ...members].sort(), files.sort())
  for (const name of ['system/portal', 'system/processes', 'system/fairness', 'local/embedded', 'redis/tls'])
    assert.ok(alone.includes(`test/${name}.test.ts`), name)
  for (const name of ['caps/read', 'system/retries']) assert.ok(members.includes(`test/${name}.test.ts`), name)
})
