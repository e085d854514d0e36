import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTATIONS } from './mutations.ts'
import { ROOT } from './sources.ts'

/**
 * Says which tests to run after a change of a file, by two sources. Imports are read from the
 * working tree each time, so they are never older than the code. Records of coverage also find the
 * tests that reach the file through a whole gateway. If a test has changed since its record was
 * made, the record does not count.
 */

/** A test and the reason why it is chosen. */
export interface ChosenTest {
  test: string
  why: string
}

const RECORDS = join(ROOT, 'node_modules/.cache/test-records')

/** Most imports between a file and a test. With more, almost every test would be chosen. */
const DISTANCE_MAX = 3

/**
 * Most tests that imports may choose. A longer list says nothing: hundreds of tests import the
 * table of errors.
 */
const BY_IMPORTS_MAX = 8

/** Tests that read all files of a kind. No import shows this. */
const READ_BY: [kind: RegExp, tests: string[]][] = [
  [
    /^src\/upstreams\/(?:recordings\/)?[^/]+\.(?:ts|json)$/,
    ['test/catalog/upstream-files.test.ts', 'test/catalog/upstreams.test.ts', 'test/catalog/readme.test.ts'],
  ],
  [/\.md$/, ['test/documents.test.ts', 'test/catalog/readme.test.ts']],
  [/^src\/config(?:\.ts$|\/)/, ['test/config/config.test.ts', 'test/documents.test.ts']],
  [/^src\/(?:docs\/(?:error|failure)-causes|openapi\/error-responses)\.ts$/, ['test/errors.test.ts']],
]

/** Most tests that coverage may choose, and the share of the best score that each of them needs. */
const BY_COVERAGE_MAX = 8
const SCORE_SHARE_MIN = 0.2

/**
 * Patterns of references: imports of values, scripts that code loads, and scripts that scripts
 * include.
 */
const REFERENCES = [
  /^(?:import|export)\s+(?!type\s)(?:[^'";]*?\sfrom\s+)?'(\.[^']+)'/gm,
  /\b(?:import|URL)\(\s*'(\.[^']+)'/g,
  /^--- @include "(\.[^"]+)"/gm,
]

/** Maps each file to the files that refer to it. */
function readReferrers(): Map<string, string[]> {
  const referrers = new Map<string, string[]>()
  for (const path of globSync('{src,workers,test}/**/*.{ts,js,mjs,lua}', { cwd: ROOT })) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const [, name = ''] of REFERENCES.flatMap((pattern) => [...text.matchAll(pattern)])) {
      const target = relative(ROOT, resolve(ROOT, dirname(path), name))
      referrers.set(target, [...(referrers.get(target) ?? []), path])
    }
  }
  return referrers
}

const isTest = (path: string): boolean => path.endsWith('.test.ts')

/** The name without its folder and endings: a test of the same name is the test of the file. */
const stemOf = (path: string): string => basename(path).replace(/(\.test)?\.\w+$/, '')

/**
 * Tests that import the file. If there is no such test, tests that import a file that imports it,
 * and so on. Tests in the folder of the file come first.
 */
function testsByImports(file: string): ChosenTest[] {
  const referrers = readReferrers()
  const seen = new Set([file])
  let reached = [file]
  for (let distance = 1; distance <= DISTANCE_MAX; distance += 1) {
    reached = [...new Set(reached.flatMap((path) => referrers.get(path) ?? []))].filter((path) => !seen.has(path))
    for (const path of reached) seen.add(path)
    const tests = reached.filter(isTest)
    const why = distance === 1 ? 'imports it' : `${distance} imports lead to it`
    if (tests.length > 0)
      return [
        ...tests.filter((test) => isInFolderOf(test, file)),
        ...tests.filter((test) => !isInFolderOf(test, file)),
      ].map((test) => ({ test, why }))
  }
  return []
}

/** Whether a test is in the folder that mirrors the folder of a file; `test/workers` is flat. */
const isInFolderOf = (test: string, file: string): boolean =>
  dirname(test) === dirname(file).replace(/^src/, 'test') ||
  (test.startsWith('test/workers/') && file.startsWith('workers/'))

interface Coverage {
  hash: string
  /** Names of the functions that the test entered, by file. */
  entered: Record<string, string[]>
}

const hashOf = (test: string): string =>
  createHash('sha256')
    .update(readFileSync(join(ROOT, test)))
    .digest('hex')

const recordPath = (test: string): string => join(RECORDS, `${test.replaceAll('/', '+')}.json`)

/** The record of a test, unless the test has changed since. */
function readRecord(test: string): Coverage | undefined {
  const path = recordPath(test)
  if (!existsSync(path)) return undefined
  const record: Coverage = JSON.parse(readFileSync(path, 'utf8'))
  return record.hash === hashOf(test) ? record : undefined
}

export const listTestFiles = (): string[] => globSync('test/**/*.test.ts', { cwd: ROOT }).sort()

/** Tests without a record, or with a record of an earlier version of the test. */
export const unrecordedTests = (): string[] => listTestFiles().filter((test) => readRecord(test) === undefined)

/**
 * Writes the record of a test: the functions that it entered.
 *
 * @param folder the folder that `NODE_V8_COVERAGE` named when the test ran
 */
export function writeRecord(test: string, folder: string): void {
  const names = new Map<string, Set<string>>()
  for (const file of readdirSync(folder)) {
    const { result }: V8Coverage = JSON.parse(readFileSync(join(folder, file), 'utf8'))
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue
      const path = relative(ROOT, fileURLToPath(url))
      if (!/^(src|workers)\//.test(path)) continue
      const entered = names.get(path) ?? new Set()
      for (const { functionName, ranges } of functions)
        if (functionName !== '' && (ranges[0]?.count ?? 0) > 0) entered.add(functionName)
      names.set(path, entered)
    }
  }
  const entered = Object.fromEntries([...names].map(([path, functions]) => [path, [...functions].sort()]))
  mkdirSync(RECORDS, { recursive: true })
  writeFileSync(recordPath(test), JSON.stringify({ hash: hashOf(test), entered } satisfies Coverage))
}

interface V8Coverage {
  result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[]
}

/**
 * Tests that entered functions of the file. The fewer tests enter a function, the more it counts.
 * So functions that every start of a gateway enters choose no test.
 */
function testsByCoverage(file: string): ChosenTest[] {
  const entered = new Map<string, string[]>()
  const testsOfFunction = new Map<string, number>()
  for (const test of listTestFiles()) {
    const functions = readRecord(test)?.entered[file] ?? []
    entered.set(test, functions)
    for (const name of functions) testsOfFunction.set(name, (testsOfFunction.get(name) ?? 0) + 1)
  }
  const scores = [...entered].map(([test, functions]) => ({
    test,
    count: functions.length,
    score: functions.reduce((sum, name) => sum + 1 / (testsOfFunction.get(name) ?? 1), 0),
  }))
  const best = Math.max(0, ...scores.map(({ score }) => score))
  return scores
    .filter(({ score }) => score > 0 && score >= best * SCORE_SHARE_MIN)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, BY_COVERAGE_MAX)
    .map(({ test, count }) => ({ test, why: `enters ${count} of its functions` }))
}

/**
 * The tests of a file, in the order of how much they say about it. A test belongs to itself, and a
 * Lua script has the tests that catch its mutations.
 */
export function testsOf(file: string): ChosenTest[] {
  const path = relative(ROOT, resolve(ROOT, file))
  if (isTest(path)) return [{ test: path, why: 'is the file' }]
  const sameName = listTestFiles()
    .filter((test) => stemOf(test) === stemOf(path) && (isInFolderOf(test, path) || test.startsWith('test/system/')))
    .map((test) => ({ test, why: 'has its name' }))
  const breaks = MUTATIONS.filter((mutation) => mutation.file === path).flatMap(({ tests }) => tests)
  const byMutation = [...new Set(breaks)].map((test) => ({ test, why: 'catches mutations of it' }))
  const byKind = READ_BY.filter(([kind]) => kind.test(path)).flatMap(([, tests]) => tests)
  const ofKind = byKind.map((test) => ({ test, why: 'reads all files of its kind' }))
  const known = [...sameName, ...byMutation, ...ofKind, ...testsByCoverage(path)]
  const byImports = testsByImports(path)
  const isTelling = known.length === 0 || byImports.length <= BY_IMPORTS_MAX
  const chosen = new Map<string, ChosenTest>()
  for (const choice of isTelling ? [...known, ...byImports.slice(0, BY_IMPORTS_MAX)] : known)
    if (!chosen.has(choice.test)) chosen.set(choice.test, choice)
  return [...chosen.values()]
}
