import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { MUTATIONS } from './mutations.ts'
import { ROOT } from './sources.ts'

// If a script had the text twice, the mutation would break only the first place.
it('every mutation of a script still finds the text that it breaks, and finds it once', () => {
  const lost = MUTATIONS.filter(({ file, from }) => readFileSync(join(ROOT, file), 'utf8').split(from).length !== 2)
  assert.deepEqual(
    lost.map(({ file, name }) => `${file}: ${name}`),
    [],
  )
})

it('every script and every file that scripts include has a mutation', () => {
  const files = globSync('{src,workers}/**/*.lua', { cwd: ROOT })
  assert.ok(files.length > 40)
  assert.deepEqual(
    files.filter((path) => !MUTATIONS.some(({ file }) => file === path)),
    [],
  )
})

it('every mutation of a script has a row in the table of the tests that caught them', () => {
  const table = readFileSync(join(ROOT, 'test/tools/mutations.md'), 'utf8')
  const rows = [...table.matchAll(/^\| `(.+?)` \| (.+?) \| (.+) \(`(.+?)`\) \|$/gm)]
  assert.deepEqual(
    rows.map(([, file, name]) => `${file}: ${name}`),
    MUTATIONS.map(({ file, name }) => `${file.replace(/^src\//, '')}: ${name}`),
  )
  for (const [index, [, , name, caughtBy = '', file = '']] of rows.entries()) {
    assert.ok(MUTATIONS[index]?.tests.includes(`test/${file}`), `${name}: ${file}`)
    const text = readFileSync(join(ROOT, 'test', file), 'utf8').replaceAll("\\'", "'")
    assert.ok(text.includes(caughtBy), `${file} has no test "${caughtBy}"`)
  }
  assert.ok(table.includes(`in these ${MUTATIONS.length} ways`))
})
