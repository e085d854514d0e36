import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { availableParallelism, getPriority, setPriority, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run as runFiles } from 'node:test'
import { spec } from 'node:test/reporters'
import pg from 'pg'
import { loadInstallPolicy } from '../src/config.ts'
import { migrate } from '../src/db/migrate.ts'
import type { EmbeddedServer } from '../src/local/embedded/embedded-server.ts'
import { startPostgres } from '../src/local/embedded/postgres.ts'
import { installBrowser } from './support/install-browser.ts'
import { SPARING_FLAGS } from './support/node-flags.ts'
import { bundlePackages } from './support/package-bundles.ts'
import { offerRedis } from './support/redis-pool.ts'
import { startTestRedis } from './support/services.ts'
import { endSharing, reaches, shareProcesses } from './tools/shared-processes.ts'
import { testsOf, unrecordedTests, writeRecord } from './tools/tests-of.ts'

const USAGE = `npm test                        types, style and every test on real services
npm test -- <test file> …       the named files; options of node --test may follow
npm test -- --durations         every test, and writes how long each slow file took
npm run test:unit               the tests that need no service and are quick
npm run test:for -- <file> …    the tests of a file, and why these
npm run test:for -- --record    records which functions each test enters
npm run test:containers         the tests that need a Docker engine, which must answer`

const OPTIONS = ['--unit', '--containers', '--record', '--for', '--durations']

const print = (text: string): void => console.log(`› ${text}`)

async function run(command: string, args: string[], environment: Record<string, string> = {}): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...environment } })
  const [code] = await once(child, 'exit')
  return code ?? 1
}

/** Longest time that a test may take, milliseconds. */
const TEST_MS_MAX = 150_000

function runTests(args: string[], environment: Record<string, string> = {}): Promise<number> {
  return run(process.execPath, [...SPARING_FLAGS, '--test', `--test-timeout=${TEST_MS_MAX}`, ...args], environment)
}

/**
 * Runs the tests of functions that start nothing. A single process runs all of them, because a
 * process for each file would cost ten times as much as the tests.
 */
async function runUnitTests(files: string[]): Promise<number> {
  await bundlePackages()
  return await runTests(['--test-isolation=none', ...files])
}

/**
 * Whether a test file, or what it imports of the tests, starts Postgres, Redis, a gateway or a
 * browser.
 */
const needsService = (file: string): boolean =>
  reaches(file, (path) => path.startsWith('src/local/embedded/')) || needsBrowser(file)

const needsBrowser = (file: string): boolean => reaches(file, (path) => path === 'test/support/browser.ts')

/**
 * Files that run at the same time. They are more than the processors, because each file waits for
 * windows and leases now and then. A whole run has spare processes too, for the times at which many
 * files wait.
 */
const FILES_AT_ONCE = availableParallelism() + 2
const SPARE_PROCESSES = 2
const CONCURRENCY = `--test-concurrency=${FILES_AT_ONCE}`

/**
 * Seconds that each slow file took in a whole run, by its path in this folder without `.test.ts`.
 * `npm test -- --durations` writes it anew.
 */
const DURATIONS = new URL('durations.json', import.meta.url)

/** The list leaves out files that take less. */
const SLOW_SECONDS_MIN = 5

const durationKey = (file: string): string => relative('test', file).replace(/\.test\.ts$/, '')

/** Files that need the browser begin so many seconds later, because it may have to be installed. */
const BROWSER_SECONDS = 60

/** The slowest files first, so that no slow file runs alone at the end. */
function slowestFirst(files: string[]): string[] {
  const known: Record<string, number> = JSON.parse(readFileSync(DURATIONS, 'utf8'))
  const secondsOf = (file: string): number =>
    (known[durationKey(file)] ?? 0) - (needsBrowser(file) ? BROWSER_SECONDS : 0)
  return files.toSorted((one, other) => secondsOf(other) - secondsOf(one))
}

function writeDurations(seconds: Map<string, number>): void {
  const slow = [...seconds].filter(([, value]) => value >= SLOW_SECONDS_MIN)
  const slowest = slow.toSorted(([, one], [, other]) => other - one)
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(slowest), null, 2)}\n`)
}

/**
 * Runs test files in processes that share them, and in processes of their own if they need them.
 *
 * @param folder gets what the processes share
 * @param seconds gets how long each file took
 * @returns the exit code
 */
async function runShared(files: string[], folder: string, seconds: Map<string, number>): Promise<number> {
  let code = 0
  const count = { usual: FILES_AT_ONCE, spare: SPARE_PROCESSES }
  const tests = runFiles({
    files: shareProcesses(slowestFirst(files), folder, count).map((file) => resolve(file)),
    concurrency: count.usual + count.spare,
    timeout: TEST_MS_MAX,
    execArgv: SPARING_FLAGS,
  })
  tests.on('test:fail', () => {
    code = 1
  })
  // A file of a shared process is a test with the name of the file. The other files are quick.
  tests.on('test:complete', ({ name, nesting, details }) => {
    if (nesting === 0 && name.endsWith('.test.ts'))
      seconds.set(durationKey(name), Math.round(details.duration_ms / 1000))
  })
  for await (const lines of tests.compose(spec)) process.stdout.write(lines)
  return code
}

/**
 * Tests that need no service but take seconds, because they start Python or change every member of
 * every mapping.
 */
const SLOW = ['clients/clients', 'catalog/upstreams'].map((name) => `test/${name}.test.ts`)

const startsNothing = (file: string): boolean => !file.startsWith('test/system/') && !needsService(file)

const listTests = (): string[] => globSync('test/**/*.test.ts').sort()

async function main(args: string[]): Promise<number> {
  const named = args.filter((arg) => !arg.startsWith('--'))
  if (named.length === 0 && args.some((arg) => !OPTIONS.includes(arg))) {
    console.log(USAGE)
    return args.includes('--help') ? 0 : 1
  }
  if (args.includes('--unit'))
    return await runUnitTests(listTests().filter((file) => !SLOW.includes(file) && startsNothing(file)))
  if (args.includes('--containers')) {
    const files = ['test/system/containers.test.ts', 'test/system/compose.test.ts']
    return await runTests(['--test-timeout=1800000', '--test-concurrency=1', ...files], { TEST_CONTAINERS: 'insist' })
  }
  if (args.includes('--record')) return await recordTests(named)
  if (args.includes('--for')) return await runTestsFor(named)
  if (named.length > 0) return await withServices(named, () => runTests([CONCURRENCY, ...args]))
  return await runEverything(args.includes('--durations'))
}

/**
 * Runs every test, and at the same time the checks of types and style, because tests wait now and
 * then. If a check fails, no further test file begins, and the findings of the check are printed
 * last.
 */
async function runEverything(writesDurations: boolean): Promise<number> {
  print('Checking types and style beside the tests …')
  const checking = checkTypesAndStyle()
  const seconds = new Map<string, number>()
  const tests = listTests()
  const code = await withServices(tests, async (folder) => {
    const ending = checking.then((found) => found !== '' && endSharing(folder))
    const failed = await runShared(tests, folder, seconds)
    await ending
    return failed
  })
  const findings = await checking
  console.log(findings || '› Types and style are in order.')
  if (findings !== '') return 1
  if (writesDurations) writeDurations(seconds)
  return code
}

/** @returns the findings, or an empty text */
async function checkTypesAndStyle(): Promise<string> {
  // Several threads would each check the types that they share, at half the processor time more.
  const checks = [
    ['tsc', '--singleThreaded'],
    ['tsc', '--singleThreaded', '-p', 'tsconfig.browser.json'],
    ['biome', 'check', '--error-on-warnings', '.'],
  ] as const
  const findings = await Promise.all(checks.map(([command, ...args]) => findingsOf(command, args)))
  return findings.join('')
}

/** Returns the output of a program that fails. If it succeeds, an empty text. */
async function findingsOf(command: string, args: string[]): Promise<string> {
  // The compiler is written in Go, and collects garbage less often at a sixth of the processor time
  // less.
  const env = { ...process.env, GOGC: '400' }
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(String(data)))
  const [code] = await once(child, 'close')
  return code === 0 ? '' : `${command} ${args.join(' ')} failed:\n${output.join('')}\n`
}

/**
 * `npm run test:for -- <file> …`: runs the tests of files, and first prints the tests with the
 * reason for each.
 */
async function runTestsFor(files: string[]): Promise<number> {
  const chosen = new Map(files.flatMap(testsOf).map((choice) => [choice.test, choice]))
  if (chosen.size === 0) print(`No test is known for ${files.join(', ')}.`)
  for (const { test, why } of chosen.values()) print(`${test} ${why}`)
  const unrecorded = unrecordedTests().length
  if (unrecorded > 0)
    print(`${unrecorded} tests have no record of what they enter: npm run test:for -- --record makes the records.`)
  if (chosen.size === 0) return 1
  const tests = [...chosen.keys()]
  const runAll = () => runTests([CONCURRENCY, ...tests])
  return await (tests.every(startsNothing) ? runUnitTests(tests) : withServices(tests, runAll))
}

/**
 * `npm run test:for -- --record [test …]`: runs tests with V8's coverage, and records what they
 * enter.
 */
async function recordTests(tests: string[]): Promise<number> {
  const waiting = tests.length > 0 ? [...tests] : unrecordedTests()
  let code = 0
  const recordOneByOne = async (): Promise<void> => {
    for (let test = waiting.shift(); test !== undefined; test = waiting.shift()) {
      const folder = await mkdtemp(join(tmpdir(), 'agw-coverage-'))
      const failed = await runTests(['--test-reporter=dot', test], { NODE_V8_COVERAGE: folder })
      code = Math.max(code, failed)
      if (failed === 0) writeRecord(test, folder)
      await rm(folder, { recursive: true, force: true })
    }
  }
  return await withServices(waiting, async () => {
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, recordOneByOne))
    return code
  })
}

/** Name of the database that the databases of test files are copies of. */
const TEMPLATE = 'template_of_tests'

/**
 * Nothing of a test run needs to survive a crash of the machine, so no commit waits for the disk.
 * Databases live for seconds, so vacuuming gains nothing. Because the password is hashed only once,
 * each of thousands of connections saves 2 ms of processor time. The schema is made once, in the
 * template of the databases.
 */
async function prepareDatabases(serverUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum']) {
    await client.query(`alter system set ${setting} = off`)
  }
  await client.query('select pg_reload_conf()')
  await client.query('set scram_iterations = 1')
  const { username, password } = new URL(serverUrl)
  await client.query(`alter role ${client.escapeIdentifier(username)} password ${client.escapeLiteral(password)}`)
  await client.query(`create database ${TEMPLATE}`)
  await client.end()
  const template = new URL(serverUrl)
  template.pathname = `/${TEMPLATE}`
  await migrate(template.href)
}

/** Number of Redis servers of a run. If none of them is free, a file starts a Redis of its own. */
const REDIS_COUNT = FILES_AT_ONCE + SPARE_PROCESSES + 2

/**
 * How much higher the priority of Postgres and Redis is than the priority of test processes,
 * because the gateway waits a second or two for a store, and each test process wants a whole core.
 */
const PRIORITY_GAIN = 5

/** Sets the priority of processes that start from now on. */
function setPriorityIfAllowed(priority: number): void {
  try {
    setPriority(priority)
  } catch {
    // Only root may raise the priority. For other users all processes have the same priority.
  }
}

/** The file system of Linux in memory, and the room that it must have, bytes. */
const MEMORY_FOLDER = '/dev/shm'
const MEMORY_BYTES_MIN = 4 * 1024 ** 3

/**
 * A folder for what the services and the tests write, in memory if there is room. Each database has
 * hundreds of files, and a file system on a disk takes more processor time to make and remove them
 * than Postgres takes for all statements. The folders that tests make with `tmpdir()` are in it.
 * Other accounts may pass through, because Postgres runs under an account of its own if root runs
 * the tests.
 */
async function makeRunFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY_FOLDER).catch(() => ({ bavail: 0, bsize: 0 }))
  const folder = await mkdtemp(join(bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY_FOLDER : tmpdir(), 'agw-run-'))
  await chmod(folder, 0o711)
  const temporary = join(folder, 'tmp')
  await mkdir(temporary)
  await chmod(temporary, 0o1777)
  process.env.TMPDIR = temporary
  return folder
}

/**
 * Runs tests with a Postgres and a few Redis servers for all of them, which they find by their
 * environment, and with a browser if they need it.
 *
 * @param runAll gets a folder that is removed afterwards
 */
async function withServices(tests: string[], runAll: (folder: string) => Promise<number>): Promise<number> {
  const folder = await makeRunFolder()
  print('Starting Postgres and Redis for the tests …')
  const priority = getPriority()
  setPriorityIfAllowed(priority - PRIORITY_GAIN)
  const servers: EmbeddedServer[] = []
  try {
    const postgres = await startPostgres({ dataDir: folder, print })
    servers.push(postgres)
    process.env.TEST_DATABASE_URL = postgres.superuserUrl
    process.env.TEST_DATABASE_TEMPLATE = TEMPLATE
    await Promise.all([prepareDatabases(postgres.superuserUrl), startRedisServers(folder, servers), bundlePackages()])
    setPriorityIfAllowed(priority)
    const installing = tests.some(needsBrowser) ? installBrowserBeside(folder) : undefined
    const [code] = await Promise.all([runAll(folder), installing])
    return code
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Starts the Redis servers that test files borrow. */
async function startRedisServers(folder: string, servers: EmbeddedServer[]): Promise<void> {
  const urls: string[] = []
  for (let index = 0; index < REDIS_COUNT; index += 1) {
    // The first start makes sure that the machine has the program.
    const options = { dataDir: join(folder, `redis-${index}`), print, install: loadInstallPolicy() }
    const redis = await startTestRedis(options)
    servers.push(redis)
    urls.push(redis.url)
  }
  process.env.TEST_REDIS_FOLDER = offerRedis(folder, urls)
}

/** Installs the browser while tests run that do not need it. The other tests wait for the mark. */
async function installBrowserBeside(folder: string): Promise<void> {
  const mark = join(folder, 'browser')
  process.env.TEST_BROWSER_MARK = mark
  await installBrowser(print)
  await writeFile(mark, '')
}

process.exit(await main(process.argv.slice(2)))
