import { setTimeout as delay } from 'node:timers/promises'
import { retryUntil } from '../async/retry-until.ts'
import { loadCatalog } from '../catalog/catalog.ts'
import { exampleCall, firstExampleCall } from '../catalog/example-call.ts'
import { contactWords } from '../catalog/limit-words.ts'
import { CONSOLE_FILE, consoleUrl } from '../config/operator-client.ts'
import { type Config, ConfigError, isLocalAddress, loadConfig, loadStartConfig, type StartConfig } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { checkAddresses } from '../http/server/listen.ts'
import { createLog, formatLogLine } from '../log.ts'
import { useNameServers } from '../net/name-server.ts'
import { print, welcomeText } from './console-output.ts'
import { openDataDir } from './data-dir.ts'
import { closeDemoAccount, type DemoAccount, loadDemoAccount } from './demo-account.ts'
import type { EmbeddedServer } from './embedded/embedded-server.ts'
import { type KeptServer, keepServer } from './embedded/keep-server.ts'
import { startPostgres } from './embedded/postgres.ts'
import { addressOf } from './embedded/postgres-roles.ts'
import { wasLeftBehind } from './embedded/private-dir.ts'
import { startRedis } from './embedded/redis.ts'
import { probeNow } from './probe-now.ts'
import { describeReachability } from './reachability.ts'
import { loadSecrets, writePrivateJson } from './secrets.ts'
import { type ProcessPlan, Supervisor } from './supervisor.ts'
import { watchSources } from './watch-sources.ts'

/**
 * Runs the whole service on one machine: Postgres and Redis if no address is set, then every
 * process.
 */
const output = {
  isTerminal: process.stdout.isTTY === true,
  isVerbose: false,
}
const supervisor = new Supervisor((label, line) => {
  const text = formatLogLine(label, line, output)
  if (text !== undefined) console.log(text)
})
const embedded: KeptServer[] = []
let isEnding = false

/**
 * If the end is requested while services start, it waits for them so long, milliseconds, because it
 * can stop only services that have started.
 */
const STARTING_MS_MAX = 8_000
const { promise: started, resolve: setStarted } = Promise.withResolvers<void>()

/**
 * How long the processes of a killed start may take to end, milliseconds. They first finish their
 * calls.
 */
const LEFT_BEHIND_MS_MAX = 25_000

const startedAt = Date.now()

/** `npm run dev`: processes start again when the source code changes. */
const isWatching = process.argv.includes('--watch')

/** How long the welcome text waits for the first probes, milliseconds. */
const REACHABLE_MS_MAX = 4_000

/** The same wait after the welcome text, if no upstream was tried before it, milliseconds. */
const REACHABLE_LATER_MS_MAX = 60_000

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(0))
// The process that started this process has ended without a signal.
process.once('disconnect', () => void end(0))

try {
  await start().finally(setStarted)
} catch (error) {
  // If the end was requested, a failure to start is expected.
  if (!isEnding) {
    print(error instanceof Error ? error.message : String(error))
    if (error instanceof Error && error.cause && !(error instanceof ConfigError)) print(String(error.cause))
    // A setting is checked before anything starts, so there is nothing to stop.
    if (error instanceof ConfigError && embedded.length === 0) process.exit(1)
    await end(1)
  }
}

async function start(): Promise<void> {
  refuseArguments()
  const settings = loadStartConfig()
  if (process.getuid?.() === 0) print('You are running as root; a separate user is safer.')
  output.isVerbose = settings.isVerbose
  await checkPorts(settings)
  await openDataDir(settings.dataDir)
  const secrets = await loadSecrets(settings.dataDir, settings.secrets)
  checkSettings(settings, secrets)
  const services = await startServices(settings)
  throwIfEnding()
  const environment = { ...secrets, ...services, BASE_URL: settings.baseUrl }
  const config = loadConfig({ ...settings.environment, ...environment })
  print('Bringing the database schema up to date …')
  useNameServers(config.nameServers)
  await migrate(config.databaseUrl, print)
  const demo = await openDemo(config, settings)
  throwIfEnding()
  const consolePort = await startProcesses(settings, environment)
  setStarted()
  const url = consoleUrl(settings.opsHost, consolePort)
  await writePrivateJson(settings.dataDir, CONSOLE_FILE, { url })
  const { OPERATOR_TOKEN: operatorToken } = secrets
  // The start does not wait for these probes.
  const probe = (slugs: string[]) => void probeNow(config, { slugs, name: `start-${startedAt}` })
  const fromConsole = { url, token: operatorToken, since: startedAt, probe }
  const reachable = await describeReachability(fromConsole, REACHABLE_MS_MAX)
  throwIfEnding()
  const isBrief = output.isTerminal && !output.isVerbose
  const catalog = await loadCatalog(config.upstreams.bySlug, config.upstreams)
  const example = firstExampleCall(catalog.values())
  const words = {
    examplePath: example && exampleCall(example.api.slug, example.endpoint),
    contactRules: [...catalog.values()].flatMap((api) => contactWords(api) ?? []),
  }
  console.log(welcomeText({ config, demo, consoleUrl: url, operatorToken, ...words, reachable, isBrief }))
  if (reachable === undefined) {
    void describeReachability(fromConsole, REACHABLE_LATER_MS_MAX).then((words) => words && !isEnding && print(words))
  }
  if (!isWatching) return
  watchSources(new URL('../../', import.meta.url), (file) => {
    print(`${file} changed; starting the processes again …`)
    supervisor.restart()
  })
}

/** @throws ConfigError for an argument that would have no effect, such as `--port` */
function refuseArguments(): void {
  const surplus = process.argv.slice(2).filter((arg) => arg !== '--watch')
  if (surplus.length === 0) return
  throw new ConfigError(
    `npm start accepts no argument, not "${surplus.join(' ')}". Settings are variables, as in PORT=4000 npm start: see src/docs/operators/configuration.md`,
  )
}

function throwIfEnding(): void {
  if (isEnding) throw new Error('ended by a signal')
}

/**
 * Checks every setting before anything is started, with placeholders for addresses that are not
 * known yet.
 */
function checkSettings({ environment, databaseUrl, redisUrl }: StartConfig, secrets: Record<string, string>): void {
  const embeddedUrl = addressOf({ port: 5432, superuserPassword: '', password: '' })
  const standIns = { DATABASE_URL: databaseUrl ?? embeddedUrl, REDIS_URL: redisUrl ?? 'redis://embedded' }
  loadConfig({ ...environment, ...secrets, ...standIns })
}

/**
 * Checks the ports before anything is started, so that a port in use ends the start at once, with
 * one sentence. If an earlier start was killed, its processes end by themselves, so their ports are
 * waited for.
 */
async function checkPorts(settings: StartConfig): Promise<void> {
  const { dataDir } = settings
  const leftBehind = await Promise.all(['postgres', 'redis'].map((name) => wasLeftBehind(dataDir, name)))
  const forMs = leftBehind.includes(true) ? LEFT_BEHIND_MS_MAX : 0
  let isTold = false
  const mayRepeat = (error: unknown): boolean => {
    if (isEnding || !(error instanceof ConfigError)) return false
    if (!isTold) print('Waiting for the processes that an earlier start left behind …')
    isTold = true
    return true
  }
  await retryUntil(() => checkFreePorts(settings), { everyMs: 100, forMs, mayRepeat })
}

async function checkFreePorts({
  host,
  webPorts,
  redirectPort,
  opsHost,
  opsPort,
  metricsHost,
  metricsPorts,
}: StartConfig): Promise<void> {
  await checkAddresses([
    ...webPorts.map((port) => ({ host, hostVariable: 'HOST', port, portVariable: 'PORT' })),
    ...(redirectPort === undefined
      ? []
      : [{ host, hostVariable: 'HOST', port: redirectPort, portVariable: 'HTTP_REDIRECT_PORT' }]),
    { host: opsHost, hostVariable: 'OPS_HOST', port: opsPort, portVariable: 'OPS_PORT' },
    ...metricsPorts
      .filter((port) => port !== 0)
      .map((port) => ({ host: metricsHost, hostVariable: 'METRICS_HOST', port, portVariable: 'METRICS_PORT' })),
  ])
}

async function startServices({
  dataDir,
  databaseUrl,
  redisUrl,
  install,
}: StartConfig): Promise<{ DATABASE_URL: string; REDIS_URL: string }> {
  const options = { dataDir, print, install }
  const [postgres, redis] = await Promise.all([
    databaseUrl ?? startEmbedded('Postgres', () => startPostgres(options)),
    redisUrl ?? startEmbedded('Redis', () => startRedis(options)),
  ])
  return { DATABASE_URL: postgres, REDIS_URL: redis }
}

async function startEmbedded(name: string, start: () => Promise<EmbeddedServer>): Promise<string> {
  const server = await keepServer({ name, start, print })
  embedded.push(server)
  server.givenUp.then((reason) => {
    print(reason.message)
    return end(1)
  })
  return server.url
}

/**
 * Opens the demo account. Everybody who reads the log can read its keys, so it is only for a person
 * who tries the service on this machine. At a public address there is no demo account, and the demo
 * account of earlier starts is disabled.
 */
async function openDemo(config: Config, { dataDir, baseUrl }: StartConfig): Promise<DemoAccount | undefined> {
  const db = openDatabase(config.databaseUrl, createLog(config.log, 'start'))
  try {
    if (isLocalAddress(baseUrl)) return await loadDemoAccount(db, dataDir, config.secrets.keyPepper)
    const closed = await closeDemoAccount(db, dataDir)
    if (closed) print(`The demo account ${closed} is disabled, because BASE_URL is a public address.`)
    return undefined
  } finally {
    await db.destroy()
  }
}

/**
 * Starts every process.
 * @returns the port of the console
 */
async function startProcesses(
  { processes, webPorts, opsPort, metricsPorts }: StartConfig,
  environment: Record<string, string>,
): Promise<number> {
  const kinds = [
    ...numbered('web', processes.webNodes, (index) => ({
      kind: 'web' as const,
      entry: 'src/server.ts',
      // Only one API node redirects, because there is only one such port.
      environment: { PORT: String(webPorts[index]), ...(index === 0 ? {} : { HTTP_REDIRECT_PORT: '' }) },
    })),
    ...numbered('worker', processes.workers, () => ({
      kind: 'worker' as const,
      entry: 'workers/worker.ts',
      environment: {},
    })),
    { kind: 'probe' as const, label: 'probe', entry: 'workers/probe.ts', environment: {} },
    { kind: 'ops' as const, label: 'ops', entry: 'src/ops.ts', environment: { OPS_PORT: String(opsPort) } },
  ]
  // The processes share this machine, so each gets its own port for metrics, in this order.
  const plans = kinds.map((kind, index) => ({
    ...kind,
    environment: {
      ...environment,
      ...kind.environment,
      PROCESS_NAME: kind.label,
      METRICS_PORT: String(metricsPorts[index]),
    },
  }))
  print(`Starting ${plans.map(({ label }) => label).join(', ')} …`)
  const messages = await Promise.all(plans.map((plan) => supervisor.start(plan)))
  return Number(Object(messages.at(-1)).listening ?? opsPort)
}

function numbered(kind: string, count: number, plan: (index: number) => Omit<ProcessPlan, 'label'>): ProcessPlan[] {
  return Array.from({ length: count }, (_, index) => ({ label: `${kind}-${index + 1}`, ...plan(index) }))
}

/**
 * Ends everything in the reverse order of starting. If it is called again, it ends everything at
 * once.
 */
async function end(code: number): Promise<void> {
  if (isEnding) {
    supervisor.kill()
    process.exit(1)
  }
  isEnding = true
  print('Stopping …')
  await supervisor.end()
  await Promise.race([started, delay(STARTING_MS_MAX)])
  const failures = await Promise.allSettled(embedded.map((server) => server.stop()))
  for (const failure of failures) if (failure.status === 'rejected') print(String(failure.reason))
  print('Stopped. Your data is kept.')
  process.exit(code)
}
