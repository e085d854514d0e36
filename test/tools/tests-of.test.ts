import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import { ROOT } from './sources.ts'
import { listTestFiles, testsOf } from './tests-of.ts'

const namesOf = (file: string): string[] => testsOf(file).map(({ test }) => test)

it('the first test of a file is the test with its name, and other tests are found by what they import', () => {
  assert.deepEqual(testsOf('src/redis/script.ts')[0], { test: 'test/redis/script.test.ts', why: 'has its name' })
  assert.ok(namesOf('workers/permits/permit-client.ts').includes('test/workers/permit-clients.test.ts'))
})

it('the tests of an upstream include the tests that read all upstreams, and are all there', () => {
  const names = namesOf('src/upstreams/weather.ts')
  for (const test of [
    'test/upstreams/weather.test.ts',
    'test/catalog/upstream-files.test.ts',
    'test/catalog/readme.test.ts',
  ])
    assert.ok(names.includes(test), test)
  assert.deepEqual(
    names.filter((name) => !listTestFiles().includes(name)),
    [],
  )
})

it('the tests of a file that reads settings include the test of the list of settings', () => {
  for (const file of ['src/config.ts', 'src/config/accounts.ts'])
    for (const test of ['test/config/config.test.ts', 'test/documents.test.ts'])
      assert.ok(namesOf(file).includes(test), `${file}: ${test}`)
})

it('for a file that hundreds of tests import, only its own test is listed', () => {
  assert.deepEqual(namesOf('src/errors.ts'), ['test/errors.test.ts'])
})

it('the tests of a script are the tests that catch its mutations', () => {
  assert.ok(namesOf('src/caps/lua/acquire.lua').includes('test/caps/model.test.ts'))
})

it('the test of a test is the test itself, and a path may be absolute', () => {
  assert.deepEqual(namesOf(join(ROOT, 'test/errors.test.ts')), ['test/errors.test.ts'])
})
