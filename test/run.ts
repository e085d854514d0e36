import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { loadInstallPolicy } from '../src/config.ts'
import { startPostgres } from '../src/local/embedded/postgres.ts'
import { startRedis } from '../src/local/embedded/redis.ts'

/**
 * `npm test`: types, lint, then every test on real services. Arguments name test files to run alone. `--unit` runs the
 * tests that need no service, and nothing else; `--containers` those that need a Docker engine, which must answer.
 */
const print = (text: string): void => console.log(`› ${text}`)

async function run(command: string, args: string[], environment: Record<string, string> = {}): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...environment } })
  const [code] = await once(child, 'exit')
  return code ?? 1
}

function runTests(args: string[], environment: Record<string, string> = {}): Promise<number> {
  return run(process.execPath, ['--test', '--test-timeout=240000', ...args], environment)
}

/** Hundreds of pure functions: one process for all of them, because a process a file costs ten times what they do. */
const runUnitTests = (files: string[]): Promise<number> => runTests(['--test-isolation=none', ...files])

/** What a test file imports when it needs Postgres, Redis, a gateway or a browser. */
const NEEDS_SERVICE = /from '[./]+\/(support\/(services|gateway|stage|portal|browser|cap-state)|src\/local\/embedded\/)/

/** Files at one time: two more than processors, because each waits for windows and leases now and then. */
const CONCURRENCY = `--test-concurrency=${availableParallelism() + 2}`

/** Test files, those that need no service apart from the others. */
function listTests(): { unit: string[]; others: string[] } {
  const files = globSync('test/**/*.test.ts').sort()
  const isUnit = (file: string) => !file.startsWith('test/system/') && !NEEDS_SERVICE.test(readFileSync(file, 'utf8'))
  const { unit = [], others = [] } = Object.groupBy(files, (file) => (isUnit(file) ? 'unit' : 'others'))
  return { unit, others }
}

async function main(args: string[]): Promise<number> {
  const { unit, others } = listTests()
  if (args.includes('--unit')) return await runUnitTests(unit)
  if (args.includes('--containers')) {
    const files = ['test/system/containers.test.ts', 'test/system/compose.test.ts']
    return await runTests(['--test-timeout=1800000', '--test-concurrency=1', ...files], { TEST_CONTAINERS: 'insist' })
  }
  if (args.length > 0) return await runWithServices([CONCURRENCY, ...args])
  print('Checking types and style …')
  const checks = [run('tsc', []), run('biome', ['check', '--error-on-warnings', '.'])]
  if (Math.max(...(await Promise.all(checks))) !== 0) return 1
  const codes = [await runUnitTests(unit), await runWithServices([CONCURRENCY, ...others])]
  return Math.max(...codes)
}

/** Nothing of a test run needs to survive a crash of the machine: every commit is spared its wait for the disk. */
async function forgetDurability(serverUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    await client.query(`alter system set ${setting} = off`)
  }
  await client.query('select pg_reload_conf()')
  await client.end()
}

async function runWithServices(args: string[]): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-run-'))
  print('Starting Postgres for the tests …')
  const postgres = await startPostgres({ dataDir: folder, print })
  try {
    await forgetDurability(postgres.superuserUrl)
    // Each test file starts a Redis of its own; this one only makes sure that the machine has the program.
    await (await startRedis({ dataDir: folder, print, install: loadInstallPolicy() })).stop()
    return await runTests(args, { TEST_DATABASE_URL: postgres.superuserUrl })
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

process.exit(await main(process.argv.slice(2)))
