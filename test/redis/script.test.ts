import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { it } from 'node:test'
import { parse } from 'luaparse'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { loadedScripts, loadScript } from '../../src/redis/script.ts'
import { borrowRedis } from '../support/services.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Globals that a script finds in Redis without having defined them. */
const REDIS_GLOBALS = new Set(
  `redis KEYS ARGV cjson cmsgpack bit struct math string table tonumber tostring type unpack select pairs ipairs next
   error pcall assert`.split(/\s+/),
)

interface Parsed {
  globals?: { name: string; loc?: { start: { line: number } } }[]
}

it('every .lua file belongs to a script that parses and uses nothing undefined', async () => {
  for await (const path of glob('{src,workers}/**/*.ts', { cwd: ROOT })) {
    if ((await readFile(join(ROOT, path), 'utf8')).includes('loadScript(new URL')) await import(join(ROOT, path))
  }
  const used = new Set<string>()
  for (const [path, { script, files }] of loadedScripts) {
    for (const file of files) used.add(file)
    const { globals = [] } = parse(script.lua, { luaVersion: '5.1', scope: true }) as Parsed
    const unknown = globals.map(({ name }) => name).filter((name) => !REDIS_GLOBALS.has(name))
    assert.deepEqual(unknown, [], path)
  }
  for await (const path of glob('{src,workers}/**/*.lua', { cwd: ROOT })) {
    assert.ok(used.has(join(ROOT, path)) || path === 'src/redis/lua/clock.lua', `${path} is part of no script`)
  }
})

it('a script of caps, and what it includes, names the file of each function that it calls', async () => {
  const folder = join(ROOT, 'src/caps/lua')
  const paths = globSync('**/*.lua', { cwd: folder }).map((path) => join(folder, path))
  const texts = new Map(await Promise.all(paths.map(async (path) => [path, await readFile(path, 'utf8')] as const)))
  const homes = new Map<string, string>()
  for (const [path, text] of texts) {
    if (!path.includes('/include/')) continue
    for (const [, name = ''] of text.matchAll(/^local function (\w+)/gm)) homes.set(name, path)
  }
  assert.ok(homes.size > 20)
  for (const [path, text] of texts) {
    const included = [...text.matchAll(/^--- @include "(.+)"$/gm)].map(([, to = '']) => resolve(path, '..', to))
    const code = text.replaceAll(/--\[\[[\s\S]*?\]\]|--.*/g, '')
    for (const [, name = ''] of code.matchAll(/(?<![.\w])(\w+)\(/g)) {
      const home = homes.get(name)
      if (home === undefined || home === path) continue
      assert.ok(included.includes(home), `${path} calls ${name} and does not include ${home}`)
    }
  }
})

it('scripts of caps name the keys of a cap as src/redis/keys.ts does, in its order', async () => {
  const text = await readFile(join(ROOT, 'src/caps/lua/include/keys.lua'), 'utf8')
  const [, names = ''] = /^local (.+) = unpack\(KEYS\)$/m.exec(text) ?? []
  const keys = capKeys.all('any', 'shared').map((key) => key.slice(capKeys.prefix('any', 'shared').length))
  assert.deepEqual(
    names.split(', '),
    keys.map((key) => key.replaceAll('-', '_').toUpperCase()),
  )
})

it('a script gets its constants from TypeScript and its includes once, and names the line that failed', async (t) => {
  const server = await borrowRedis()
  const redis = openRedis([server.url], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(async () => {
    await closeRedis(redis)
    await server.stop()
  })
  const url = new URL('./lua/clock-reader.lua', import.meta.url)
  const script = loadScript(url, { FACTOR: 2, NAMES: ['a', 'b"'] })
  for (const _ of ['in full', 'by its hash']) {
    assert.deepEqual(await script.run(redis, [], [1_800_000_000_000.25, 21]), ['1800000000000.250', 42, 2])
  }
  const time = async (): Promise<number> => {
    const [seconds, micros] = await redis.time()
    return (Number(seconds) * 1_000_000 + Number(micros)) / 1_000
  }
  const before = await time()
  const [now] = (await script.run(redis, [], ['', 1])) as [string]
  const after = await time()
  assert.ok(before <= Number(now) && Number(now) <= after, `${before} ${now} ${after}`)
  await assert.rejects(script.run(redis, [], ['', 'x']), /clock-reader\.lua:5/)
  assert.throws(() => loadScript(url, { FACTOR: 2, NAMES: [], UNUSED: 1 }), /clock-reader\.lua does not use UNUSED/)
})
