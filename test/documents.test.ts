import assert from 'node:assert/strict'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'
import { SETTING_GROUPS } from '../src/config/settings.ts'
import { ROOT } from './tools/sources.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const find = (...patterns: string[]): string[] => globSync(patterns, { cwd: ROOT })

const documents = find('*.md', '.github/*.md', '{src,workers,test}/**/*.md').map((path) => ({ path, text: read(path) }))
const files = new Set([
  ...find('{src,workers,test,migrations,deploy,.github}/**/*.*', '*.*', '.*.json', '.env.example'),
  ...documents.map(({ path }) => path),
])
const code = [...files].filter((path) => /\.(ts|mjs|js|lua|py|yml|yaml|sh|example)$/.test(path)).map(read)

/** The matches of a pattern in the documents for which `isTrue` is false. */
function untrue(pattern: RegExp, isTrue: (name: string, document: string) => boolean): string[] {
  return documents.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)]
      .map(([, name = '']) => name)
      .filter((name) => !isTrue(name, path))
      .map((name) => `${path}: ${name}`),
  )
}

describe('a document', () => {
  it('a document links to files that are there', () => {
    assert.ok(documents.length > 30 && files.size > 500)
    const links = /\]\((?!https?:|#|\/)([^)#]+)/g
    assert.deepEqual(
      untrue(links, (link, document) => files.has(normalize(join(dirname(document), link)))),
      [],
    )
  })

  it('a document names source files that are there, by the end of their paths', () => {
    const paths = [...files].map((path) => `/${path}`)
    const named = /`((?!\/)[\w./-]*\w\.(?:ts|lua|mjs|md|yml|sh))`/g
    assert.deepEqual(
      untrue(named, (name) => paths.some((path) => path.endsWith(`/${name}`))),
      [],
    )
  })

  it('a document names only scripts of package.json that exist, and each script stands in a document', () => {
    const { scripts } = JSON.parse(read('package.json'))
    assert.deepEqual(
      untrue(/npm run (?:--silent )?([\w:-]+)/g, (name) => name in scripts),
      [],
    )
    const named = documents.flatMap(({ text }) =>
      [...text.matchAll(/`npm (?:run )?([\w:-]+)/g)].map(([, name]) => name),
    )
    assert.deepEqual(
      Object.keys(scripts).filter((name) => !named.includes(name)),
      [],
    )
  })

  it('a document names settings, error codes and methods that the code has', () => {
    // Node and the SDK of OpenTelemetry read these themselves; upstreams have settings by pattern.
    const isForeign = (name: string) => /^(?:OTEL|NODE)_|^UPSTREAM_[A-Z0-9_]+_(?:URL|KEY|CAPS)$/.test(name)
    const constants = /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b/g
    assert.deepEqual(
      untrue(constants, (name) => isForeign(name) || code.some((text) => text.includes(name))),
      [],
    )
    const hasMethod = (name: string): boolean => {
      const [type, method] = name.split('.').map((part) => new RegExp(`^ *(?:export class|async)? ?${part}\\b`, 'm'))
      return code.some((text) => type?.test(text) && method?.test(text))
    }
    assert.deepEqual(untrue(/`([A-Z]\w+\.\w+)\(\)`/g, hasMethod), [])
  })
})

describe('a list of files', () => {
  for (const folder of ['src', 'workers']) {
    it(`the README of ${folder} has a word on each file and folder beside it`, () => {
      const text = read(`${folder}/README.md`)
      const names = readdirSync(join(ROOT, folder)).filter((name) => !/^README|^\./.test(name))
      assert.deepEqual(
        names.filter((name) => !text.includes(`\`${name}\``) && !text.includes(`\`${name}/\``)),
        [],
      )
    })
  }

  it('the list of settings names every setting that the configuration reads, and no other', () => {
    const listed = SETTING_GROUPS.flatMap(({ settings }) => settings.flatMap(({ names }) => names))
    // Variables of an API are read by the ends of their names.
    const ofAll = listed.filter((name) => !name.includes('<SLUG>'))
    const reader = find('src/config.ts', 'src/config/*.ts')
      .filter((path) => path !== 'src/config/settings.ts')
      .map(read)
      .join('\n')
    const named = new Set([...reader.matchAll(/'([A-Z]{3,}(?:_[A-Z]+)*)'/g)].map(([, name = '']) => name))
    // Set by the supervisor and by shells, the other form of a listed setting, and ends of
    // UPSTREAM_<SLUG>_URL and _KEY.
    for (const name of ['PROCESS_NAME', 'USER', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'URL', 'KEY']) {
      assert.ok(named.delete(name), name)
    }
    // Codes of Node's errors are written alike.
    const settings = [...named].filter((name) => !/^E(AI_)?[A-Z]+$/.test(name))
    assert.deepEqual(ofAll.toSorted(), settings.sort())
  })
})
