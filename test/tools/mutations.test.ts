import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { MUTATIONS } from './mutations.ts'
import { ROOT } from './sources.ts'

it('every mutation of a script still finds the text that it breaks', () => {
  const lost = MUTATIONS.filter(({ file, from }) => !readFileSync(join(ROOT, file), 'utf8').includes(from))
  assert.deepEqual(
    lost.map(({ file, name }) => `${file}: ${name}`),
    [],
  )
})
