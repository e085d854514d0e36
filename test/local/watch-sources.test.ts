import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { watchSources } from '../../src/local/watch-sources.ts'

it('a changed source file is reported once, and files that are not code are not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-watch-'))
  for (const name of ['src', 'workers', 'migrations']) await mkdir(join(folder, name))
  const { promise, resolve } = Promise.withResolvers<string>()
  const changed: string[] = []
  const stop = watchSources(pathToFileURL(`${folder}/`), (file) => {
    changed.push(file)
    resolve(file)
  })
  try {
    await writeFile(join(folder, 'src', 'notes.txt'), 'x')
    await writeFile(join(folder, 'src', 'app.ts'), '1')
    await writeFile(join(folder, 'src', 'app.ts'), '2')
    assert.equal(await promise, 'src/app.ts')
    assert.deepEqual(changed, ['src/app.ts'])
  } finally {
    stop()
    await rm(folder, { recursive: true })
  }
})
