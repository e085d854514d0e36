import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { ConfigError } from '../../src/config.ts'
import { openDataDir } from '../../src/local/data-dir.ts'
import { loadSecret } from '../../src/local/embedded/private-dir.ts'
import { loadSecrets } from '../../src/local/secrets.ts'

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-secrets-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

/**
 * Runs a function of a module in a process that can write nothing to any file, as on a full disk.
 */
async function runOnFullDisk(module: string, call: string): Promise<void> {
  const url = new URL(`../../src/local/${module}`, import.meta.url)
  const code = `const m = await import(${JSON.stringify(url)}); await m.${call}`
  const shell = 'trap "" XFSZ; ulimit -f 0; exec "$@"'
  const command = [process.execPath, '--input-type=module', '--eval', code]
  await promisify(execFile)('sh', ['-c', shell, 'sh', ...command], { env: { PATH: process.env.PATH } })
}

test('a data folder that cannot be used is named with its variable and the reason', async (t) => {
  const folder = await makeFolder(t)
  await openDataDir(join(folder, 'made', 'for it'))
  const file = join(folder, 'file')
  await writeFile(file, '')
  for (const [dataDir, why] of [
    [file, 'is no folder'],
    [join(file, 'below'), 'is no folder'],
    [join(folder, 'x'.repeat(300)), 'has a path that is too long'],
  ] as const) {
    await assert.rejects(openDataDir(dataDir), (error) => {
      assert.ok(error instanceof ConfigError)
      assert.equal(error.message, `DATA_DIR cannot be used: ${dataDir} ${why}`)
      return true
    })
  }
})

test('the secrets of a data folder are the same for all of several starts at once', async (t) => {
  const folder = await makeFolder(t)
  const found = await Promise.all(Array.from({ length: 5 }, () => loadSecrets(join(folder, 'new'))))
  for (const secrets of found) assert.deepEqual(secrets, found[0])
  assert.deepEqual(await loadSecrets(join(folder, 'new')), found[0])
  assert.equal((await stat(join(folder, 'new', 'secrets.json'))).mode & 0o777, 0o600)
  assert.deepEqual(await readdir(join(folder, 'new')), ['secrets.json'])
})

test('the secrets of a data folder with a database are not made anew, unless an operator asks for it', async (t) => {
  const folder = await makeFolder(t)
  const file = join(folder, 'secrets.json')
  await mkdir(join(folder, 'postgres', 'data'), { recursive: true })
  await assert.rejects(loadSecrets(folder), (error) => {
    assert.ok(error instanceof ConfigError)
    assert.match(error.message, /secrets\.json is missing/)
    return true
  })
  assert.deepEqual(await readdir(folder), ['postgres'])
  const { OPERATOR_TOKEN: _notGiven, ...given } = await loadSecrets(join(folder, 'other'))
  await assert.rejects(loadSecrets(folder, given), ConfigError)
  await writeFile(file, '{}')
  assert.equal(Object.keys(await loadSecrets(folder)).length, 4)
  assert.deepEqual(await loadSecrets(folder, given), { ...(await loadSecrets(folder)), ...given })
})

test('the secrets of a data folder are not lost if a secret has to be added and the disk is full', async (t) => {
  const folder = await makeFolder(t)
  const { OPERATOR_TOKEN: _added, ...earlier } = await loadSecrets(folder)
  await writeFile(join(folder, 'secrets.json'), JSON.stringify(earlier))
  await assert.rejects(runOnFullDisk('secrets.ts', `loadSecrets(${JSON.stringify(folder)})`), /EFBIG/)
  assert.deepEqual(JSON.parse(await readFile(join(folder, 'secrets.json'), 'utf8')), earlier)
  assert.deepEqual({ ...(await loadSecrets(folder)), OPERATOR_TOKEN: '' }, { ...earlier, OPERATOR_TOKEN: '' })
})

test('the password of an embedded server is made once the disk has room, even if an empty file is left of it', async (t) => {
  const folder = await makeFolder(t)
  const file = join(folder, 'password')
  await assert.rejects(runOnFullDisk('embedded/private-dir.ts', `loadSecret(${JSON.stringify(file)})`), /EFBIG/)
  const password = loadSecret(file)
  assert.match(password, /^[\w-]{32}$/)
  assert.equal(loadSecret(file), password)
  await writeFile(file, '')
  assert.match(loadSecret(file), /^[\w-]{32}$/)
})
