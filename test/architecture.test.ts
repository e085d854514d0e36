import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, it } from 'node:test'
import { NODE_FLAGS } from '../src/config.ts'
import {
  countLines,
  folderOf,
  importCircles,
  isOurs,
  listFolders,
  luaLines,
  offences,
  ROOT,
  readSources,
  upwardImports,
} from './tools/sources.ts'

/** An exception of the style checker's configuration. */
interface Override {
  includes: string[]
  linter: { rules: { complexity?: Record<string, unknown> } }
}

const sources = await readSources('src', 'workers')
const migrations = await readSources('migrations')

describe('imports', () => {
  it('imports are seen by these checks: the entry files have theirs', () => {
    const app = sources.find(({ path }) => path === 'src/app.ts')
    assert.ok(app)
    assert.ok(app.imports.some(({ of }) => of === 'src/routes/call.ts'))
    assert.ok(app.imports.some(({ of, isTypeOnly }) => of === 'src/context.ts' && isTypeOnly))
    assert.ok(sources.length > 80)
    for (const { path, imports } of sources) {
      for (const { of } of imports) if (isOurs(of)) assert.ok(existsSync(join(ROOT, of)), `${path} -> ${of}`)
    }
  })

  it('imports never lead from src to workers, nor from either to tests or migrations', () => {
    const isAllowed = (from: string, to: string) =>
      !/^(test|migrations)\//.test(to) && !(from.startsWith('src/') && to.startsWith('workers/'))
    assert.deepEqual(offences(sources, isAllowed), [])
  })

  it('imports of node:http are of types alone: src/node-http.ts says why', async () => {
    for (const { path, text } of sources) assert.doesNotMatch(text, /^import (?!type\b).* from 'node:http'/m, path)
  })

  it('imports of look-ups are of src/net: one name of which no server says anything would hold a thread that stores need', () => {
    // Commands that a person runs, and stores that this program starts on this machine.
    const own = sources.filter(({ path }) => !path.startsWith('src/local/'))
    const isAllowed = (from: string, to: string) => !/^node:dns/.test(to) || from.startsWith('src/net/')
    const values = own.map((source) => ({ ...source, imports: source.imports.filter(({ isTypeOnly }) => !isTypeOnly) }))
    assert.deepEqual(offences(values, isAllowed), [])
    const connects = /new (?:pg\.(?:Pool|Client)|Redis|TypedRedis|Agent|OTLPTraceExporter)\(|createTransport\(/
    const named = /NamedSocket|NamedConnector|PostgresAccess|\blookup\b/
    for (const { path, text } of own) if (connects.test(text)) assert.match(text, named, path)
  })

  it('imports of nodemailer are of types, or made by the first mail: most nodes never send one', () => {
    for (const { path, text } of sources) assert.doesNotMatch(text, /^import (?!type\b).* from 'nodemailer'/m, path)
  })

  it('imports of validators are from typebox/schema: typebox/compile loads 146 more modules, for conversions nobody uses', () => {
    assert.deepEqual(
      offences(sources, (_from, to) => to !== 'typebox/compile'),
      [],
    )
  })

  it('imports of routes are made by src/app.ts and src/ops.ts alone; routes do not import each other', () => {
    const isAllowed = (from: string, to: string) =>
      !to.startsWith('src/routes/') ||
      to === 'src/routes/session-guard.ts' ||
      from === 'src/app.ts' ||
      from === 'src/ops.ts'
    assert.deepEqual(offences(sources, isAllowed), [])
  })

  it('imports of an upstream file are what the catalog has for it, what its provider’s files share, and the schema library', () => {
    const names = [
      ...['upstream', 'upstream-file', 'upstream-request', 'endpoint', 'response-class', 'fields', 'json'],
      ...['parameters', 'parameter-values', 'calendar', 'country-names', 'lifetimes'],
    ]
    const forUpstreams = names.map((name) => `src/catalog/${name}.ts`)
    const files = sources.filter(({ path }) => path.startsWith('src/upstreams/'))
    assert.ok(files.length >= 28)
    assert.deepEqual(
      offences(
        files,
        (from, to) =>
          forUpstreams.includes(to) ||
          to === 'typebox' ||
          to.startsWith('src/upstreams/families/') ||
          to.startsWith(`src/upstreams/recordings/${basename(from, '.ts')}.`),
      ),
      [],
    )
    const shared = sources.filter(({ path }) => forUpstreams.includes(path))
    assert.equal(shared.length, forUpstreams.length)
    assert.deepEqual(
      offences(shared, (_from, to) =>
        [
          ...forUpstreams,
          ...['src/catalog/cache-rule.ts', 'src/catalog/terms.ts', 'src/async/memoize.ts', 'typebox', 'entities'],
        ].includes(to),
      ),
      [],
    )
    for (const { path, text } of [...files, ...shared]) {
      assert.ok(
        !/\bDate\.now\(|new Date\(\)|\bprocess\.|\bfetch\(|Math\.random\(/.test(text),
        `${path} is no pure function`,
      )
    }
  })

  it('imports of a migration are none of ours', () => {
    assert.ok(migrations.length >= 2)
    assert.deepEqual(
      offences(migrations, (_from, to) => !isOurs(to)),
      [],
    )
  })

  it('imports of values make no circle of files, nor of folders', () => {
    assert.deepEqual(importCircles(sources), [])
    assert.deepEqual(importCircles(sources, folderOf), [])
  })

  for (const root of ['src', 'workers'] as const) {
    it(`imports lead to folders above in the list of ${root}/README.md, which has every folder`, async () => {
      const folders = await listFolders(root)
      const entries = await readdir(join(ROOT, root), { withFileTypes: true })
      assert.deepEqual(
        folders.toSorted(),
        entries
          .filter((entry) => entry.isDirectory() && entry.name !== 'decisions')
          .map(({ name }) => name)
          .toSorted(),
      )
      assert.deepEqual(upwardImports(sources, folders, root), [])
    })
  }

  it('imports of Node’s own modules have the node: prefix', () => {
    const builtin =
      /^(assert|buffer|child_process|crypto|dns|events|fs|http|https|net|os|path|stream|url|util|zlib)(\/|$)/
    assert.deepEqual(
      offences([...sources, ...migrations], (_from, to) => !builtin.test(to)),
      [],
    )
  })
})

describe('an error', () => {
  // Texts of libraries change without notice. Only the code at the start of a reply of Redis is
  // part of its protocol.
  it('code distinguishes errors by class and code, never by text', () => {
    // Texts in the answers of upstreams are not errors of a library.
    const own = sources.filter(({ path }) => !path.startsWith('src/upstreams/'))
    const readers = own.filter(({ text }) =>
      text
        .split('\n')
        .some(
          (line) =>
            /\.message\.(includes|startsWith|endsWith|match|indexOf|search)\(/.test(line) ||
            /\b(test|exec)\([^)]*\.message\b/.test(line) ||
            /\.message [!=]==? '[^']/.test(line),
        ),
    )
    assert.deepEqual(
      readers.map(({ path }) => path),
      ['src/redis/redis-error.ts'],
    )
  })
})

describe('the environment', () => {
  it('the environment is read in src/config.ts alone', () => {
    // The bootstrap runs before anything is installed, config.ts included.
    const readers = [...sources, ...migrations].filter(({ text }) =>
      /process\s*\.\s*env\b|import\.meta\.env/.test(text),
    )
    assert.deepEqual(
      readers.map(({ path }) => path).filter((path) => !path.startsWith('src/local/bootstrap')),
      ['src/config.ts'],
    )
  })
})

describe('a function', () => {
  it('a function has at most 60 lines and three positional parameters, those aside whose form a foreign interface demands', async () => {
    const { linter, overrides } = JSON.parse(await readFile(join(ROOT, '.biome.json'), 'utf8'))
    const { useMaxParams, noExcessiveLinesPerFunction } = linter.rules.complexity
    assert.deepEqual(useMaxParams, { level: 'error', options: { max: 3 } })
    assert.deepEqual(noExcessiveLinesPerFunction, { level: 'error', options: { maxLines: 60 } })
    const isOffFor = (rule: string) =>
      overrides
        .filter((override: Override) => rule in (override.linter.rules.complexity ?? {}))
        .flatMap(({ includes }: Override) => includes)
    assert.deepEqual(isOffFor('useMaxParams'), ['test/**'])
    assert.deepEqual(isOffFor('noExcessiveLinesPerFunction'), ['test/**'])
    const browser = await Promise.all(
      (await readdir(join(ROOT, 'src'), { recursive: true }))
        .filter((name) => name.endsWith('.js'))
        .map((name) => readFile(join(ROOT, 'src', name), 'utf8')),
    )
    const exceptions = [...sources.map(({ text }) => text), ...browser].flatMap((text) =>
      [...text.matchAll(/biome-ignore[^\n]*(useMaxParams|noExcessiveLinesPerFunction)[^\n]*/g)].map(([line]) => line),
    )
    assert.ok(exceptions.length > 0 && exceptions.length <= 10, exceptions.join('\n'))
    for (const line of exceptions) assert.match(line, /useMaxParams: the form of \S+ (callback|hook)s?\.$/)
  })
})

describe('a file', () => {
  it('a file has at most 300 lines, comments aside', () => {
    const long = sources
      .map(({ path, text }) => ({ path, lines: countLines(text.replaceAll(/^\s*(?:\/\/|\/?\*|--).*\n/gm, '')) }))
      .filter(({ lines }) => lines > 300)
    assert.deepEqual(long, [])
  })

  it('a file of TypeScript holds no Lua, which stands in .lua files that tools can check', () => {
    assert.deepEqual(sources.flatMap(luaLines), [])
    const text = "const SCRIPT = `\n  redis.call('SET', KEYS[1], 1)\n`"
    assert.equal(luaLines({ path: 'src/x.ts', text, imports: [] }).length, 1)
  })

  it('a file has a name in kebab-case that is an idea', () => {
    for (const { path } of [...sources, ...migrations]) {
      assert.match(path, /^[a-z]+(\/[a-z0-9-]+)*\/[a-z0-9-]+(\.d)?\.(ts|mjs)$/)
      assert.doesNotMatch(path, /\/(utils?|helpers?|common|misc)\./)
    }
  })
})

describe('what is kept for an earlier version', () => {
  /** Stored data that may be of any age, so no version ends the need to read it. */
  const WITHOUT_END = [
    'src/accounts/password.ts',
    'src/throttles/client-network.ts',
    'src/console/operator-session.ts',
    'src/db/schema-version.ts',
    'src/local/embedded/postgres-roles.ts',
  ]

  it('what is kept for an earlier version says until which version, and that version is not here yet', async () => {
    const scripts = globSync('{src,workers}/**/*.lua', { cwd: ROOT })
    const files = [...sources.map(({ path, text }) => ({ path, text }))]
    for (const path of scripts) files.push({ path, text: await readFile(join(ROOT, path), 'utf8') })
    const comments = files.flatMap(({ path, text }) =>
      [...text.matchAll(/\/\*[\s\S]*?\*\/|(?:^[ \t]*(?:\/\/|--).*\n)+/gm)].map(([comment]) => ({ path, comment })),
    )
    const isOfEarlier = /\b(?:earlier|previous) versions?\b|\bversions? (?:of )?before\b/
    const silent = comments.filter(
      ({ path, comment }) =>
        isOfEarlier.test(comment.replaceAll(/\s*\n\s*(?:\*|\/\/|--)?\s*/g, ' ')) &&
        !comment.includes('@until ') &&
        !WITHOUT_END.includes(path),
    )
    assert.deepEqual(silent, [])
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const ends = comments.flatMap(({ path, comment }) =>
      [...comment.matchAll(/@until (\d+\.\d+\.\d+)/g)].map(([, until = '']) => ({ path, until })),
    )
    assert.ok(ends.length > 0)
    const isOver = ({ until }: { until: string }) => until.localeCompare(version, 'en', { numeric: true }) <= 0
    assert.deepEqual(ends.filter(isOver), [], `version ${version} is there: remove what these comments describe`)
  })
})

describe('package.json', () => {
  const readJson = async (name: string) => JSON.parse(await readFile(join(ROOT, name), 'utf8'))

  it('package.json has the documented commands, each of a file that exists', async () => {
    const { scripts, engines } = await readJson('package.json')
    const bench = existsSync(join(ROOT, 'test/bench')) ? ['bench'] : []
    for (const name of ['start', 'test', 'web', 'worker', 'probe', 'ops', 'migrate', 'operator', ...bench]) {
      const files: string[] =
        String(scripts[name] ?? assert.fail(`no script ${name}`)).match(/[\w./-]+\.(ts|mjs)\b/g) ?? []
      assert.ok(files.length > 0, name)
      for (const file of files) assert.ok(existsSync(join(ROOT, file)), `${name} runs ${file}`)
    }
    assert.equal(engines.node, '>=20')
  })

  it('package.json names exact versions, and the lockfile has the integrity of every package and no registry host', async () => {
    const { dependencies, devDependencies, optionalDependencies, overrides } = await readJson('package.json')
    const direct = { ...dependencies, ...devDependencies, ...optionalDependencies }
    for (const [name, version] of Object.entries({ ...direct, ...overrides })) {
      assert.match(String(version), /^\d+\.\d+\.\d+(-[\w.]+)?$/, name)
    }
    const text = await readFile(join(ROOT, 'package-lock.json'), 'utf8')
    const { lockfileVersion, packages } = JSON.parse(text)
    assert.equal(lockfileVersion, 3)
    const entries = Object.entries<{ integrity?: string; link?: boolean; resolved?: string }>(packages)
    assert.ok(entries.length > 50)
    for (const [name, { integrity, link, resolved }] of entries) {
      if (name === '') continue
      assert.match(integrity ?? '', /^sha512-[A-Za-z0-9+/]{86}==$/, name)
      assert.ok(!link, name)
      assert.equal(resolved, undefined, `${name} names a host`)
    }
  })

  it('package.json has a line in the decisions for each dependency, which says what it is for', async () => {
    const { dependencies, optionalDependencies } = await readJson('package.json')
    const record = await readFile(join(ROOT, 'src/decisions/0014-dependencies-and-tracing.md'), 'utf8')
    const rows = [...record.matchAll(/^\| (`[^|]+) \| [^|]+ \|$/gm)].map(([, names = '']) => names)
    const named = rows.flatMap((names) => [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
    assert.deepEqual(named.toSorted(), Object.keys({ ...dependencies, ...optionalDependencies }).toSorted())
  })

  it('package.json and Procfile name the same processes', async () => {
    const { scripts } = await readJson('package.json')
    const lines = (await readFile(join(ROOT, 'Procfile'), 'utf8')).trim().split('\n')
    for (const [kind, command] of lines.map((line) => line.split(': '))) {
      const script = scripts[kind === 'release' ? 'migrate' : (kind ?? '')]
      // Without `exec` a signal of the runner would end only the shell of the line, and the process
      // would go on.
      assert.equal(command?.replace(/^exec node_modules\/\.bin\//, ''), script, kind)
      const flags = kind === 'web' || kind === 'worker' ? NODE_FLAGS : []
      assert.deepEqual(command?.match(/ --\S+/g)?.map((flag) => flag.trim()) ?? [], flags, kind)
    }
  })
})
