import { writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { Redis } from 'ioredis'
import type { InstallPolicy } from '../../config.ts'
import { type EmbeddedOptions, type EmbeddedServer, once } from './embedded-server.ts'
import { installRedis } from './install-redis.ts'
import { redisMemoryBytes } from './memory.ts'
import { claimDir, loadPort, loadSecret, makePrivateDir, readIfThere, readKeptPort } from './private-dir.ts'
import { isProcessOf } from './process-identity.ts'
import { prepareContainer } from './redis-container.ts'
import { findRedisProgram, type RedisProgram } from './redis-program.ts'
import { type ServerCommand, type ServerProcess, spawnServer, stopProcess, waitFor } from './server-process.ts'

/** Longest start, milliseconds. Redis first reads its append-only file, which may be long. */
const READY_MS = 120_000
const COMMAND_MS = 3000
const PORTS_MAX = 3
/** SIGTERM makes Redis write and sync its append-only file before it exits. */
const STOP_STEPS: { signal: NodeJS.Signals; waitMs: number }[] = [
  { signal: 'SIGTERM', waitMs: 20_000 },
  { signal: 'SIGKILL', waitMs: 5000 },
]

type Store = { dir: string; data: string; password: string; print: (text: string) => void; install: InstallPolicy }

/**
 * How to run a server on the store with a given port. `after` cleans up what is left after its
 * process has ended.
 */
type Runner = {
  command: (port: number) => Pick<ServerCommand, 'command' | 'commandArgs' | 'argv0' | 'input'>
  after: () => Promise<void>
  /** Set if the started process is not the server itself. */
  signal?: (signal: NodeJS.Signals) => Promise<void>
}

/**
 * Runs a Redis with its files under `<dataDir>/redis`. The server is the server on the PATH, or
 * else a container, or else newly installed.
 */
export async function startRedis({ dataDir, print, install = 'ask' }: EmbeddedOptions): Promise<EmbeddedServer> {
  const dir = await makePrivateDir(dataDir, 'redis')
  const release = await claimDir(dir, 'Redis')
  try {
    const store = {
      dir,
      data: path.join(dir, 'data'),
      password: loadSecret(path.join(dir, 'password')),
      print,
      install,
    }
    await mkdir(store.data, { recursive: true, mode: 0o700 })
    await stopLeftover(store)
    const runner = await findRunner(store)
    const { server, url } = await run(store, runner)
    const stop = once(async () => {
      await stopProcess(server.pid, STOP_STEPS)
      await server.ended
      await runner.after()
      release()
    })
    const signal = async (name: NodeJS.Signals) => (runner.signal ? await runner.signal(name) : server.kill(name))
    return { url, stop, ended: server.ended, signal, lastLog: server.lastLog }
  } catch (error) {
    release()
    throw error
  }
}

/** Tries the ways to run Redis in their order. */
async function findRunner(store: Store): Promise<Runner> {
  const { program, tooOld } = await findRedisProgram()
  if (program) return localRunner(store, program)
  const container = await prepareContainer(store.data, store.print)
  if (container) {
    return {
      command: (port) => ({
        command: 'docker',
        commandArgs: container.runArgs(port),
        input: configText({ ...store, data: '/data' }, '0.0.0.0', 6379),
      }),
      after: container.remove,
      signal: container.signal,
    }
  }
  const { found, problem } = await installRedis({
    print: store.print,
    policy: store.install,
    find: async () => (await findRedisProgram()).program,
  })
  if (found) return localRunner(store, found)
  const old = tooOld === undefined ? '' : ` (${tooOld} is too old)`
  throw new Error(
    `Redis is needed${old}: install redis-server 7.0 or newer or valkey-server, start Docker, or set REDIS_URL. ` +
      `It could not be installed automatically: ${problem}.`,
  )
}

function localRunner(store: Store, { command, argv0 }: RedisProgram): Runner {
  return {
    command: (port) => ({ command, argv0, commandArgs: ['-'], input: configText(store, '127.0.0.1', port) }),
    after: async () => undefined,
  }
}

/**
 * The configuration is passed through standard input, because every account of the machine could
 * read a password on the command line.
 */
function configText({ data, password }: Store, bind: string, port: number): string {
  return `
bind ${bind}
port ${port}
protected-mode yes
requirepass ${password}
dir ${JSON.stringify(data)}
appendonly yes
appendfsync everysec
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 8mb
save ""
maxmemory ${redisMemoryBytes()}
maxmemory-policy noeviction
daemonize no
logfile ""
`
}

async function run(store: Store, runner: Runner): Promise<{ server: ServerProcess; url: string }> {
  for (let attempt = 1; ; attempt++) {
    const port = await loadPort(path.join(store.dir, 'port'))
    const logFile = path.join(store.dir, 'log')
    const server = await spawnServer({ ...runner.command(port), cwd: store.data, logFile })
    writeFileSync(path.join(store.dir, 'pid'), `${server.pid}\n`, { mode: 0o600 })
    const url = urlOf(store, port)
    const isReady = await waitFor(() => answersPing(url), { timeoutMs: READY_MS, isOver: server.hasEnded })
    if (isReady) return { server, url }
    await stopProcess(server.pid, STOP_STEPS)
    await runner.after()
    const log = server.lastLog()
    // Another process took the port between our check and the start of Redis.
    if (attempt < PORTS_MAX && /address already in use|already allocated/i.test(log)) continue
    throw new Error(`The embedded Redis did not start. Its last log lines (${logFile}):\n${log}`)
  }
}

/**
 * Stops a server that outlived the start that ran it, as a process or a container. Two servers on
 * one append-only file would destroy it. The server is stopped by its pid and also by its port; our
 * password shows that a server on the port is ours.
 */
async function stopLeftover(store: Store): Promise<void> {
  const pid = Number(readIfThere(path.join(store.dir, 'pid')))
  if (pid > 1 && (await isProcessOf(pid, store.data))) {
    store.print('Stopping the Redis that an earlier start left behind …')
    if (!(await stopProcess(pid, STOP_STEPS)))
      throw new Error(`The Redis of ${store.dir} (process ${pid}) does not stop.`)
  }
  const port = readKeptPort(path.join(store.dir, 'port'))
  if (port === undefined || !(await answersPing(urlOf(store, port)))) return
  store.print('Stopping the Redis that an earlier start left behind …')
  await sendCommand(urlOf(store, port), 'SHUTDOWN', 'NOSAVE').catch(() => undefined) // it closes the connection instead of answering
  const isGone = async () => ((await answersPing(urlOf(store, port))) ? undefined : true)
  if (!(await waitFor(isGone, { timeoutMs: 20_000 }))) throw new Error(`The Redis on port ${port} does not stop.`)
}

const urlOf = ({ password }: Store, port: number) => `redis://:${password}@127.0.0.1:${port}/0`

/** True if the server answers; undefined if it is not there, is still loading, or is not ours. */
async function answersPing(url: string): Promise<true | undefined> {
  try {
    return (await sendCommand(url, 'PING')) === 'PONG' ? true : undefined
  } catch {
    return undefined
  }
}

async function sendCommand(url: string, command: string, ...commandArgs: string[]): Promise<unknown> {
  const client = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: COMMAND_MS,
    commandTimeout: COMMAND_MS,
    disconnectTimeout: 50, // its timer would keep the process for 2 s after a refused connection
  })
  client.on('error', () => undefined) // the command fails with it
  try {
    await client.connect()
    return await client.call(command, ...commandArgs)
  } finally {
    client.disconnect()
  }
}
