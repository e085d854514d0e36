import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { migrate } from '../../src/db/migrate.ts'
import { freePort } from '../../src/local/embedded/free-port.ts'
import type { LocalNode, LocalWorker } from './local-node.ts'
import { SPARING_FLAGS } from './node-flags.ts'
import { type Services, startServices } from './services.ts'

/** Addresses of the services, and the folder for the gateway's own files. */
type Addresses = Pick<Services, 'databaseUrl' | 'redisUrl' | 'folder'>

/** A running gateway, on services of its own. */
export interface Gateway {
  services: Addresses
  /** Addresses of the API nodes. */
  urls: string[]
  url: string
  /**
   * Nodes and consoles inside the test's own process, by their addresses; `send` reaches them by
   * `inject`.
   */
  apps: Map<string, FastifyInstance>
  /** The processes. A local gateway has none, and reading this member throws. */
  readonly web: ChildProcess[]
  readonly workers: ChildProcess[]
  /**
   * Every line that the processes have printed so far. They write lines in batches, so wait for a
   * line with `until`; only `allOutput` shows that a line is absent. Throws if the gateway is local
   * and has started no process, because it prints nothing.
   */
  readonly output: string[]
  /**
   * Ends every process in order.
   * @returns all that they printed. Throws for a local gateway
   */
  allOutput: () => Promise<string>
  environment: Record<string, string>
  startWeb: (environment?: Record<string, string>) => Promise<string>
  /** Starts an API node as a process, even if the gateway is local. A test can kill that node. */
  startWebProcess: (environment?: Record<string, string>) => Promise<{ url: string; child: ChildProcess }>
  /** Throws for a local gateway. */
  startWorker: (environment?: Record<string, string>) => Promise<ChildProcess>
  /**
   * Starts an operator console.
   * @returns its address
   */
  startConsole: () => Promise<string>
  /** Starts any process of the service and waits until it says that it is ready. */
  startProcess: (
    entry: string,
    environment?: Record<string, string>,
  ) => Promise<{ child: ChildProcess; message: unknown }>
  stop: () => Promise<void>
}

export interface GatewayOptions {
  webNodes?: number
  /**
   * Nodes and workers run inside the test's own process, if the test kills none of them and reads
   * no log. Unlike processes, they share the state of modules and the clock with each other and
   * with the test.
   */
  isInProcess?: boolean
  workers?: number
  environment?: Record<string, string>
  /** Options of Node for the processes. Default: a single thread collects garbage. */
  execArgv?: string[]
  /**
   * Folder of another checkout whose version the first processes have; processes that start later
   * have the version of this checkout.
   */
  firstCheckout?: string | undefined
  /** Use these services; they are not stopped at the end. */
  services?: Addresses
}

/** Secrets of a test run. They differ in each run, and have a mark by which a test finds a leak. */
export function testSecrets(): Record<string, string> {
  const secret = () => randomBytes(32).toString('base64url')
  return { JWT_SECRET: secret(), KEY_PEPPER: secret(), ENCRYPTION_KEY: secret(), OPERATOR_TOKEN: secret() }
}

const OWN_CHECKOUT = new URL('../../', import.meta.url)

/** Longest time that a process may take to start on a busy machine, milliseconds. */
const START_MS_MAX = 60_000

/**
 * The environment that a process takes from the test run. It has no settings of the developer.
 * Processes share compiled code.
 */
export function inheritedEnvironment(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) }
}

/**
 * For gateways whose public address is HTTPS and that trust this machine as their proxy. Other
 * gateways ignore it.
 */
const AS_HTTPS = { 'x-forwarded-proto': 'https' }

/**
 * Loads the code of local nodes only if a test uses it, so that a test of processes does not load
 * the whole application.
 */
const local = (): Promise<typeof import('./local-node.ts')> => import('./local-node.ts')

/**
 * Settings of a gateway that answers on its public address, for clients that use the addresses in
 * its answers.
 */
export async function reachableAddress(): Promise<{ PORT: string; BASE_URL: string }> {
  const port = await freePort()
  return { PORT: String(port), BASE_URL: `http://127.0.0.1:${port}` }
}

/** Starts API nodes and workers as processes, as the Procfile does, or inside this process. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const own = options.services ? undefined : await startServices()
  const services = options.services ?? own ?? assert.fail()
  // If a test brings its own database, the database may have no schema.
  if (options.services) await migrate(services.databaseUrl)
  const environment = {
    ...testSecrets(),
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    DATA_DIR: services.folder,
    // The environment that a container would have, without settings of the developer.
    PORT: '0',
    BASE_URL: 'http://localhost:3000',
    SIGNUP_PER_MINUTE: '0',
    LOGIN_FAILURES_PER_MINUTE: '0',
    UNKNOWN_KEYS_PER_MINUTE: '0',
    CLIENT_CONNECTIONS_MAX: '0',
    CLIENT_ANONYMOUS_PER_SECOND: '0',
    ACCOUNT_REQUESTS_PER_SECOND: '0',
    LOG_LEVEL: 'info',
    ...options.environment,
  }
  const output: string[] = []
  const children: ChildProcess[] = []
  const web: ChildProcess[] = []
  const workers: ChildProcess[] = []
  const locals: LocalWorker[] = []

  let checkout =
    options.firstCheckout === undefined ? OWN_CHECKOUT : pathToFileURL(`${resolve(options.firstCheckout)}/`)

  const startProcess: Gateway['startProcess'] = async (entry, additions = {}) => {
    const child = fork(new URL(entry, checkout), {
      env: { ...inheritedEnvironment(), ...environment, ...additions },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: options.execArgv ?? SPARING_FLAGS,
    })
    children.push(child)
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => output.push(String(data)))
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`${entry} ended with ${code}:\n${output.join('')}`)
    })
    const [message] = await Promise.race([once(child, 'message', { signal: AbortSignal.timeout(START_MS_MAX) }), ended])
    ended.catch(() => undefined)
    return { child, message }
  }

  const keepLocal = (node: LocalNode): string => {
    locals.push(node)
    gateway.apps.set(node.url, node.app)
    return node.url
  }
  const ofProcesses = <T>(value: T): T => {
    if (options.isInProcess)
      throw new Error(
        'this gateway runs in the process of the test and has no processes of its own: start it without isInProcess',
      )
    return value
  }
  const gateway: Gateway = {
    services,
    urls: [],
    url: '',
    apps: new Map(),
    get web() {
      return ofProcesses(web)
    },
    get workers() {
      return ofProcesses(workers)
    },
    get output() {
      return children.length > 0 ? output : ofProcesses(output)
    },
    allOutput: async () => {
      const running = ofProcesses(children).filter((child) => child.exitCode === null && child.signalCode === null)
      // `exit` may come before the last of what a process printed, `close` does not.
      const ends = running.map((child) => once(child, 'close'))
      for (const child of running) child.kill('SIGTERM')
      await Promise.all(ends)
      return output.join('')
    },
    environment,
    startProcess,
    startWeb: async (additions) => {
      if (options.isInProcess) {
        const url = keepLocal(await (await local()).startLocalNode({ ...environment, ...additions }))
        gateway.urls.push(url)
        return url
      }
      const { child, url } = await gateway.startWebProcess(additions)
      web.push(child)
      gateway.urls.push(url)
      return url
    },
    startWebProcess: async (additions) => {
      const { child, message } = await startProcess('src/server.ts', additions)
      return { child, url: `http://127.0.0.1:${(message as { listening: number }).listening}` }
    },
    startWorker: async (additions) => {
      ofProcesses('a worker')
      const { child } = await startProcess('workers/worker.ts', additions)
      workers.push(child)
      return child
    },
    startConsole: async () => {
      if (options.isInProcess) return keepLocal(await (await local()).startLocalConsole(environment))
      const { message } = await startProcess('src/ops.ts', { OPS_PORT: '0' })
      return `http://127.0.0.1:${(message as { listening: number }).listening}`
    },
    stop: async () => {
      const running = children.filter((child) => child.exitCode === null && child.signalCode === null)
      const ends = running.map((child) => once(child, 'exit'))
      for (const child of running) child.kill('SIGKILL')
      // node:test keeps each test, and by its functions this gateway, until the process ends. What
      // the gateway has stopped must not stay with them.
      gateway.apps.clear()
      await Promise.all([...ends, ...locals.splice(0).map(({ stop }) => stop())])
      await own?.stop()
    },
  }
  const startAnyWorker = async (): Promise<unknown> =>
    options.isInProcess ? locals.push(await (await local()).startLocalWorker(environment)) : await gateway.startWorker()
  try {
    const starts = await Promise.allSettled([
      ...Array.from({ length: options.webNodes ?? 1 }, () => gateway.startWeb()),
      ...Array.from({ length: options.workers ?? 1 }, startAnyWorker),
    ])
    // All have started or failed by now, so `stop` misses none of them.
    for (const start of starts) if (start.status === 'rejected') throw start.reason
    checkout = OWN_CHECKOUT
    gateway.url = gateway.urls[0] ?? ''
    const isReady = async () => (await fetch(`${gateway.url}/readyz`, { headers: AS_HTTPS })).status === 200
    await until(isReady, START_MS_MAX)
    // Processes that start later find the code that this process has compiled. A process that a
    // test kills never writes what it has compiled.
    flushCompileCache()
    return gateway
  } catch (error) {
    // Nobody else knows these processes. If they were left running, the test file would not end.
    await gateway.stop()
    throw error
  }
}

/**
 * Waits for a condition, and checks it less often as time passes, because a check costs processor
 * time that others need.
 * @throws Error if the condition does not come true in time
 */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 45_000): Promise<void> {
  const startedAt = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - startedAt
    if (waitedMs > timeoutMs) throw new Error(`the condition did not come true in ${timeoutMs} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(10 + waitedMs / 10, 100)))
  }
}
