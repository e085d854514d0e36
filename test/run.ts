import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../src/local/embedded/postgres.ts'
import { startRedis } from '../src/local/embedded/redis.ts'

/** `npm test`: types, lint, then every test on real services. Arguments name test files to run alone. */
const say = (text: string): void => console.log(`› ${text}`)

async function run(command: string, args: string[], environment: Record<string, string> = {}): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...environment } })
  const [code] = await once(child, 'exit')
  return code ?? 1
}

function runTests(args: string[], environment: Record<string, string>): Promise<number> {
  return run(process.execPath, ['--test', '--test-timeout=240000', ...args], environment)
}

async function main(files: string[]): Promise<number> {
  if (files.length === 0) {
    say('Checking types …')
    if ((await run('tsc', [])) !== 0) return 1
    say('Checking style …')
    if ((await run('biome', ['check', '--error-on-warnings', '.'])) !== 0) return 1
  }
  const folder = await mkdtemp(join(tmpdir(), 'agw-run-'))
  say('Starting Postgres for the tests …')
  const postgres = await startPostgres({ dataDir: folder, say })
  try {
    // Each test file starts a Redis of its own; this one only makes sure that the machine has the program.
    await (await startRedis({ dataDir: folder, say })).stop()
    const environment = { TEST_DATABASE_URL: postgres.url }
    if (files.length > 0) return await runTests(['--test-concurrency=2', ...files], environment)
    // Pure functions, hundreds of them: a process for each file would cost ten times what they do.
    const mapped = await runTests(['--test-isolation=none', 'test/upstreams/*.test.ts'], environment)
    const others = await runTests(
      ['--test-concurrency=2', 'test/!(upstreams)/*.test.ts', 'test/*.test.ts'],
      environment,
    )
    return Math.max(mapped, others)
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

process.exit(await main(process.argv.slice(2)))
