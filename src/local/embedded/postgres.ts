import { chown, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { type EmbeddedOptions, type EmbeddedServer, once } from './embedded-server.ts'
import { loadPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts'
import { addressOf, prepareRoles, SUPERUSER } from './postgres-roles.ts'
import { claimDir, loadPort, loadSecret, makePrivateDir, readIfThere } from './private-dir.ts'
import { isProcessOf } from './process-identity.ts'
import { lastLines, runCommand } from './run-command.ts'
import { type ServerProcess, spawnServer, stopProcess, waitFor } from './server-process.ts'

const INITDB_MS = 120_000
/**
 * Longest start, milliseconds. After a kill, Postgres first replays its write-ahead log, which may
 * be long.
 */
const READY_MS = 120_000
const STARTS_MAX = 3
/**
 * Postgres refuses to start because of the pid file of a killed postmaster: it is cut short, or
 * another process has the pid by now. In a container the next process soon has it.
 */
const PID_FILE_REFUSED = /lock file "postmaster\.pid" (already exists|is empty)/
/**
 * A fast shutdown rolls back transactions and closes connections. The harder ways lose no data
 * either, but the next start must recover.
 */
const STOP_STEPS: { signal: NodeJS.Signals; waitMs: number }[] = [
  { signal: 'SIGINT', waitMs: 20_000 },
  { signal: 'SIGQUIT', waitMs: 5000 },
  { signal: 'SIGKILL', waitMs: 5000 },
]
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // The processes of `WEB_NODES` and `WORKERS` on a large machine may open more than 100.
  max_connections: '300',
  max_wal_size: '512MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

type Cluster = {
  dir: string
  data: string
  superuserPassword: string
  password: string
  binaries: PostgresBinaries
  print: (text: string) => void
}

export interface EmbeddedPostgres extends EmbeddedServer {
  /** Address for tasks that the service itself may not do. */
  superuserUrl: string
}

/**
 * Runs a Postgres with its files under `<dataDir>/postgres`. It has a database `gateway`, whose
 * owner is a role that owns nothing else.
 */
export async function startPostgres({ dataDir, print }: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const dir = await makePrivateDir(dataDir, 'postgres')
  const release = await claimDir(dir, 'Postgres')
  try {
    const binaries = await loadPostgresBinaries(dir)
    const superuserPassword = loadSecret(path.join(dir, 'password'))
    const password = loadSecret(path.join(dir, 'gateway-password'))
    const cluster: Cluster = { dir, data: path.join(dir, 'data'), superuserPassword, password, binaries, print }
    await stopLeftover(cluster)
    await initialise(cluster)
    const { server, url, superuserUrl } = await run(cluster)
    const stop = once(async () => {
      await stopProcess(server.pid, STOP_STEPS)
      await server.ended
      release()
    })
    return {
      url,
      superuserUrl,
      stop,
      ended: server.ended,
      signal: async (name) => server.kill(name),
      lastLog: server.lastLog,
    }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Creates the cluster once. It gets its final name when it is complete, so that an interrupted
 * start begins again.
 */
async function initialise({ dir, data, binaries, print }: Cluster): Promise<void> {
  const major = readIfThere(path.join(data, 'PG_VERSION'))?.trim()
  if (major === binaries.major) return
  if (major !== undefined) {
    throw new Error(
      `${data} was written by Postgres ${major} and this is ${binaries.major}; dump it with the old version, or set another DATA_DIR.`,
    )
  }
  print('Preparing the embedded Postgres (first run) …')
  const fresh = `${data}.new`
  await rm(fresh, { recursive: true, force: true })
  const passwordFile = path.join(dir, 'password')
  if (binaries.account) await chown(passwordFile, binaries.account.uid, binaries.account.gid)
  const { command, commandArgs, ...options } = binaries.initdb([
    ...['--pgdata', fresh, '--username', SUPERUSER, '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
    // Built-in locales, so that the machine's locales and the sort order of its C library do not
    // matter.
    ...['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'],
  ])
  const { code, output } = await runCommand(command, commandArgs, { ...options, cwd: dir, timeoutMs: INITDB_MS })
  if (code !== 0) throw new Error(`The embedded Postgres could not be prepared in ${dir}:\n${lastLines(output)}`)
  await rename(fresh, data)
}

/**
 * Stops a postmaster that outlived the start that ran it. It is not reused, because nobody would
 * see its exit or its log. It is known only from its pid file, and the pid may belong to another
 * process by now.
 */
async function stopLeftover({ data, print }: Cluster): Promise<void> {
  const pid = Number(readIfThere(pidFileOf(data))?.split('\n')[0])
  if (!Number.isInteger(pid) || pid <= 1 || !(await isProcessOf(pid, data))) return
  print('Stopping the Postgres that an earlier start left behind …')
  if (!(await stopProcess(pid, STOP_STEPS))) throw new Error(`The Postgres of ${data} (process ${pid}) does not stop.`)
}

const pidFileOf = (data: string): string => path.join(data, 'postmaster.pid')

async function run(cluster: Cluster): Promise<{ server: ServerProcess; url: string; superuserUrl: string }> {
  for (let attempt = 1; ; attempt++) {
    const port = await loadPort(path.join(cluster.dir, 'port'))
    const flags = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const command = cluster.binaries.postgres(['-D', cluster.data, ...flags])
    const logFile = path.join(cluster.dir, 'log')
    const server = await spawnServer({ ...command, cwd: cluster.dir, logFile, exitSignal: 'SIGINT' })
    const address = { port, superuserPassword: cluster.superuserPassword, password: cluster.password }
    try {
      const isReady = await waitFor(() => prepareRoles(address), { timeoutMs: READY_MS, isOver: server.hasEnded })
      if (isReady) return { server, url: addressOf(address), superuserUrl: addressOf(address, SUPERUSER) }
    } catch (error) {
      await stopProcess(server.pid, STOP_STEPS)
      throw new Error(`The embedded Postgres in ${cluster.dir} refuses its own password or database.`, { cause: error })
    }
    await stopProcess(server.pid, STOP_STEPS)
    const log = server.lastLog()
    const isPidFileRefused = PID_FILE_REFUSED.test(log)
    // No postmaster runs on these files, because `stopLeftover` has stopped it.
    if (isPidFileRefused) await rm(pidFileOf(cluster.data), { force: true })
    // Another process took the port between our check and the start of Postgres.
    const isPortTaken = log.includes('Address already in use')
    if (attempt < STARTS_MAX && (isPidFileRefused || isPortTaken)) continue
    throw new Error(`The embedded Postgres did not start. Its last log lines (${logFile}):\n${log}`)
  }
}
