import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { inheritedEnvironment, until } from '../support/gateway.ts'
import { laneKey } from '../support/lane.ts'
import { SPARING_ENVIRONMENT } from '../support/node-flags.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const START = join(import.meta.dirname, '../../src/local/start.ts')

interface Started {
  child: ChildProcess
  output: () => string
}

let folder: string
let port: number
let upstream: UpstreamServer
/** Every API leads to the loopback server, so that no probe leaves the machine. */
let addresses: Record<string, string>
let running: Started | undefined

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agw-start-'))
  port = await freePort()
  upstream = await startUpstreamServer()
  addresses = upstream.environment(...(await loadUpstreams()).keys())
  upstream.play('weather', () => ({
    current_weather: {
      time: '2026-01-02T03:00',
      interval: 900,
      temperature: 1.5,
      windspeed: 2,
      winddirection: 3,
      is_day: 1,
      weathercode: 4,
    },
  }))
})
after(async () => {
  if (running) {
    running.child.kill('SIGTERM')
    await until(() => running?.child.exitCode !== null || running.child.signalCode !== null, 30_000)
  }
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

let starts = 0

/** Variables of libpq for another Postgres. */
const OTHER_POSTGRES = { PGHOST: '203.0.113.1', PGSSLMODE: 'on', PGSSLROOTCERT: '/nowhere', PGOPTIONS: '-c a=b' }

/**
 * Runs the service on the test's folder, the first time exactly as people do. The processes that it
 * starts carry a mark by which the test finds them.
 */
function run(
  environment: Record<string, string> = {},
  args: string[] = [],
): { child: ChildProcess; output: () => string } {
  let output = ''
  const isFirst = starts === 0
  starts += 1
  const child = spawn(process.execPath, [START, ...args], {
    env: {
      ...inheritedEnvironment(),
      ...(isFirst ? {} : SPARING_ENVIRONMENT),
      HOME: process.env.HOME ?? '',
      DATA_DIR: folder,
      PORT: String(port),
      OPS_PORT: '0',
      ...OTHER_POSTGRES,
      ...addresses,
      ...environment,
    },
  })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
  return { child, output: () => output }
}

async function start(environment: Record<string, string> = {}): Promise<Started> {
  return await started(run(environment))
}

async function started({ child, output }: ReturnType<typeof run>): Promise<Started> {
  await until(() => {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}:\n${output()}`)
    return output().includes('your data stays in the data folder')
  }, 120_000)
  return { child, output }
}

/** Processes of this machine whose environment or arguments name the test's folder. */
async function processesOfFolder(): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const found = await Promise.all(
    ids.map(async (id) => {
      const read = (file: string) => readFile(`/proc/${id}/${file}`, 'utf8').catch(() => '')
      const [command, environment] = await Promise.all([read('cmdline'), read('environ')])
      const isOurs = command.includes(folder) || environment.split('\0').includes(`DATA_DIR=${folder}`)
      return isOurs ? `${id} ${command.replaceAll('\0', ' ')}` : ''
    }),
  )
  return found.filter((line) => line !== '')
}

async function environmentOfWorker(): Promise<string> {
  const [worker = ''] = (await processesOfFolder()).filter((line) => line.includes('workers/worker.ts'))
  return await readFile(`/proc/${Number.parseInt(worker, 10)}/environ`, 'utf8')
}

/** Notes a migration of a newer version, as a container of that version does on the same volume. */
async function migrateAsNewer(): Promise<void> {
  const client = new pg.Client(/DATABASE_URL=([^\0]+)/.exec(await environmentOfWorker())?.[1] ?? assert.fail())
  await client.connect()
  await client.query(
    "insert into kysely_migration (name, timestamp) values ('20991231000000-of-the-next', '2099-12-31T00:00:00.000Z')",
  )
  await client.end()
}

/** APIs that a start has probed, as the events of their queues show. */
async function probedByStart(): Promise<string[]> {
  const redis = new Redis(/REDIS_URL=([^\0]+)/.exec(await environmentOfWorker())?.[1] ?? assert.fail())
  try {
    const slugs = [...(await loadUpstreams()).keys()]
    const events = JSON.stringify(await redis.xrange(laneKey('events'), '-', '+'))
    return slugs.filter((slug) => new RegExp(`"added"[^\\]]*"${slug}-start-\\d+"`).test(events))
  } finally {
    redis.disconnect()
  }
}

const curlLines = (text: string): string[] => text.split('\n').flatMap((line) => /^\s*(curl .*)$/.exec(line)?.[1] ?? [])

/** What a person sees who pastes a line. */
async function paste(
  line: string,
): Promise<{ status: number; body: { status: string; data: Record<string, unknown> } }> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `${line} -s -w '\\n%{http_code}'`])
  const [body = '', status] = stdout.split('\n')
  return { status: Number(status), body: JSON.parse(body) }
}

const REACHABILITY = /\d+ of (\d+ enabled upstreams|the \d+ upstreams tried so far are) reachable/

describe('npm start', { skip: process.platform !== 'linux' }, () => {
  let firstKeys: string[] = []

  it('npm start says where everything is, and the lines it prints work when pasted', async () => {
    running = await start()
    const text = running.output()
    assert.match(text, new RegExp(`Portal +http://localhost:${port}\n +log in as demo@\\S+ with \\S+\n`))
    // If the machine is slow, these lines come after the rest.
    await until(() => /"process":"web-1"/.test(running?.output() ?? ''))
    await until(() => REACHABILITY.test(running?.output() ?? ''))
    assert.deepEqual(await probedByStart(), [])
    assert.match(text, new RegExp(`Docs +http://localhost:${port}/docs\n`))
    assert.match(text, /Console +http:\/\/127\.0\.0\.1:[1-9]\d+\n +token [\w-]{43}\n/)
    firstKeys = text.match(/agw_(live|test)_[0-9A-Za-z]{49}/g) ?? []
    assert.deepEqual(
      firstKeys.map((key) => key.slice(0, 9)),
      ['agw_test_', 'agw_live_'],
    )
    const [test = '', live = ''] = curlLines(text)
    const tested = await paste(test)
    assert.equal(tested.status, 200)
    assert.equal(tested.body.status, 'success')
    // Probes use the same place at the upstream, so only the answer shows where it comes from.
    assert.notEqual(tested.body.data.temperature_c, 1.5)
    const answered = await paste(live)
    assert.equal(answered.status, 200)
    assert.equal(answered.body.data.temperature_c, 1.5)
  })

  it('npm start tells the command line where its console is, which says whether callers fail, and in one line what is wrong', async () => {
    const cli = join(import.meta.dirname, '../../src/operator-cli.ts')
    const env = { ...inheritedEnvironment(), DATA_DIR: folder }
    const ask = async (...words: string[]) =>
      await promisify(execFile)(process.execPath, [cli, ...words], { env }).catch((error) => error)
    const wrong = await ask('stats')
    assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
    assert.match(wrong.stderr, /^There is no command stats; did you mean status\?[^\n]*\n$/)
    // The console may not have read the fleet yet.
    await until(async () => /APIs enabled: \d+ healthy/.test((await ask('status')).stdout))
    // Most APIs are Down here, and on a busy machine a process may seem to be missing too.
    const { stdout, code = 0 } = await ask('status', '--json')
    const problems: { rank: number }[] = JSON.parse(stdout).problems
    assert.equal(code, problems.some(({ rank }) => rank === 0) ? 1 : 0, stdout)
  })

  it('npm start starts a worker again that was killed', async () => {
    const workers = (await processesOfFolder()).filter((line) => line.includes('workers/worker.ts'))
    assert.equal(workers.length, 1)
    process.kill(Number.parseInt(workers[0] ?? '', 10), 'SIGKILL')
    const [test = ''] = curlLines(running?.output() ?? '')
    assert.equal((await paste(test)).status, 200)
    const again = (await processesOfFolder()).filter((line) => line.includes('workers/worker.ts'))
    assert.equal(again.length, 1)
    assert.notDeepEqual(again, workers)
  })

  it('npm start starts the embedded Redis and Postgres again when they are killed, and serves calls again by itself', async () => {
    const [test = ''] = curlLines(running?.output() ?? '')
    for (const [name, file] of [
      ['Redis', 'redis/pid'],
      ['Postgres', 'postgres/data/postmaster.pid'],
    ] as const) {
      const pid = Number.parseInt(await readFile(join(folder, file), 'utf8'), 10)
      process.kill(pid, 'SIGKILL')
      await until(() => running?.output().includes(`The embedded ${name} died and was started again`) === true)
      await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200)
      await until(async () => (await paste(test)).status === 200)
    }
  })

  it('npm start gives a worker no secret that it does not need', async () => {
    const environment = await environmentOfWorker()
    assert.match(environment, /ENCRYPTION_KEY=/)
    assert.doesNotMatch(environment, /JWT_SECRET=|KEY_PEPPER=|OPERATOR_TOKEN=/)
  })

  it('npm start reports a port in use in one sentence that names its variable, and does not disturb the running service', async () => {
    const second = run()
    const [code] = await once(second.child, 'close')
    assert.equal(code, 1)
    assert.match(
      second.output(),
      new RegExp(`› PORT cannot be used: port ${port} is in use\\. Set PORT to another port[^\n]*\n$`),
    )
    assert.ok(!/EADDRINUSE|\bat /.test(second.output()), second.output())
    assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200)
  })

  it('npm start refuses an argument that would have no effect, and names the place of its settings', async () => {
    const { child, output } = run({}, ['--port', '4000'])
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(output(), /^› npm start accepts no argument, not "--port 4000"\. Settings are variables, .*\n$/)
  })

  it('npm start waits for the processes of a start that was killed, instead of finding their ports in use', async () => {
    await migrateAsNewer()
    // It keeps its port until it continues.
    const node = (await processesOfFolder()).find((line) => line.includes('src/server.ts')) ?? assert.fail()
    process.kill(Number.parseInt(node, 10), 'SIGSTOP')
    running?.child.kill('SIGKILL')
    const waiting = run()
    await until(() => waiting.output().includes('› Waiting for the processes that an earlier start left behind …\n'))
    process.kill(Number.parseInt(node, 10), 'SIGCONT')
    running = await started(waiting)
  })

  it('npm start finds its data again, with the same keys, and says that a newer version has migrated them', async () => {
    const { output } = running ?? assert.fail()
    assert.match(output(), /› The schema is newer than this version, which runs on it: 20991231000000-of-the-next\n/)
    assert.deepEqual(output().match(/agw_(live|test)_[0-9A-Za-z]{49}/g), firstKeys)
    const [test = ''] = curlLines(output())
    assert.equal((await paste(test)).status, 200)
    await until(() => REACHABILITY.test(output()))
    // The start probes by itself, because the scheduled probes have run before.
    await until(async () => (await probedByStart()).length === 3)
  })

  it('npm start leaves no process behind when it gets a signal, and exits with 0', async () => {
    const child = running?.child ?? assert.fail()
    assert.ok((await processesOfFolder()).length >= 5)
    child.kill('SIGTERM')
    const [code] = await once(child, 'close')
    assert.equal(code, 0, running?.output())
    running = undefined
    assert.deepEqual(await processesOfFolder(), [])
  })

  it('npm start that gets a signal while its processes start stops what runs, exits with 0, and calls it no failure', async () => {
    const { child, output } = run()
    await until(() => output().includes('Starting web-1'), 60_000)
    child.kill('SIGINT')
    const [code] = await once(child, 'close')
    assert.equal(code, 0, output())
    assert.match(output(), /› Stopping …\n(?:.*\n)*› Stopped\. Your data is kept\.\n$/)
    assert.doesNotMatch(output(), /before it was ready|unavailable/)
    assert.deepEqual(await processesOfFolder(), [])
  })

  it('npm start names the variable with an invalid value before it starts anything', async () => {
    const { child, output } = run({
      DATA_DIR: join(folder, 'other'),
      LOG_LEVEL: 'loud',
      PORT: String(await freePort()),
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(output(), /› LOG_LEVEL must be /)
    const taken = createServer()
    taken.listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const opsPort = typeof address === 'object' && address ? address.port : 0
    const second = run({ DATA_DIR: join(folder, 'other'), OPS_PORT: String(opsPort), PORT: String(await freePort()) })
    await once(second.child, 'close')
    assert.match(second.output(), new RegExp(`› OPS_PORT cannot be used: port ${opsPort} is in use\\. Set OPS_PORT `))
    taken.close()
  })
})
