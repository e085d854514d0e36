import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { endSharing, hasSharingEnded, reaches, shareProcesses } from './shared-processes.ts'
import { ROOT } from './sources.ts'

it('each test file is in the list of the processes that share files, or has a process of its own', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-shared-'))
  t.after(() => rm(folder, { recursive: true }))
  const files = globSync('test/**/*.test.ts', { cwd: ROOT })
  const processes = shareProcesses(files, folder, { usual: 3, spare: 2 })
  const membersOf = (list: string): string[] => {
    const urls: string[] = JSON.parse(readFileSync(join(folder, list), 'utf8'))
    return urls.map((url) => relative(ROOT, fileURLToPath(url)))
  }
  const lists = globSync('*.json', { cwd: folder })
  const shared = membersOf('shared.json')
  const alone = lists.filter((list) => list !== 'shared.json').map(membersOf)
  assert.equal(processes.length, 2 + 3 + alone.length)
  // The spare processes begin with the run, so that no file of its own process takes their places.
  assert.ok(processes.slice(1, 3).every((file) => file.includes('spare')))
  assert.deepEqual([...shared, ...alone.flat()].sort(), files.sort())
  for (const name of ['redis/tls', 'http/server/pipeline'])
    assert.ok(
      alone.some(([file]) => file === `test/${name}.test.ts`),
      name,
    )
  for (const name of ['caps/read', 'system/processes']) assert.ok(shared.includes(`test/${name}.test.ts`), name)
})

it('no file of any list begins after the sharing has ended', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-shared-'))
  t.after(() => rm(folder, { recursive: true }))
  const list = join(folder, 'shared.json')
  assert.equal(hasSharingEnded(list), false)
  endSharing(folder)
  assert.equal(hasSharingEnded(list), true)
})

it('what a test file imports is found, whatever its texts look like, and a pattern in place of a file imports nothing', () => {
  const importsBrowser = (file: string) => reaches(file, (path) => path === 'test/support/browser.ts')
  const found = ['system/portal', 'system/openapi', 'system/*'].map((name) => importsBrowser(`test/${name}.test.ts`))
  assert.deepEqual(found, [true, false, false])
})
