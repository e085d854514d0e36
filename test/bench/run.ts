import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startServer } from './child.ts'
import { type Idle, measureIdle } from './idle.ts'
import { type Judgement, judge, type Ratios, type Rounds, ratiosOf } from './judge.ts'
import { type LoadGenerator, startLoadGenerator } from './load.ts'
import { measure, redisBytes } from './measure.ts'
import { hasNginx } from './nginx.ts'
import { plotCosts } from './plot.ts'
import { scenarioLines } from './report.ts'
import { SCENARIOS, type Scenario } from './scenario.ts'
import {
  FLOOR,
  type Subject,
  startBefore,
  startDirect,
  startFloor,
  startNaive,
  startOurs,
  startPlugins,
} from './subject.ts'
import type { UpstreamPlay } from './upstream-process.ts'
import { measureWaiting, type Waiting } from './waiting.ts'

/** Measurements without load, beside the scenarios. */
const WATCHED = ['idle', 'many', 'waiting']
const NAMES = [...SCENARIOS.map(({ name }) => name), ...WATCHED]

const HELP = `Usage: npm run bench -- [options]

Measures the gateway side by side with two peers, all as real processes on this machine, each with a Redis of its own:
  direct   a proxy without a queue; key and rate limit in Redis
  plugins  the same of plugins: @fastify/rate-limit, @fastify/http-proxy (with --plugins)
  naive    a queue-backed proxy as usually written: BullMQ, waitUntilFinished, fetch
  nginx    proxy_pass without key or limit, the floor of any proxy (where nginx is installed)
  before   this service as another checkout has it (with --before)
  gateway  this service: one API node, one worker

Rounds are interleaved and every other one runs in reverse order; ratios are medians of ratios within a round. Where the
base's CPU per call spreads by more than 25 %, the machine is too busy and ratios are not judged.

  --quick           three scenarios, short rounds: about three minutes
  --rounds <n>      rounds of each scenario, 3 or more        3
  --seconds <n>     measured in each round and subject        4
  --only <names>    scenarios by name: ${NAMES.join(', ')}
  --before <dir>    measures the gateway of another checkout too, its packages installed
  --check           exceeded bounds are a failure
  --own-client      load from our own client even where wrk is installed
  --profile <dir>   writes CPU profiles of the gateway's processes there
  --plugins         measures the proxy made of plugins too
  --plot <file>     draws the cost of a call by scenario, as SVG
  --json            everything measured, as JSON with the ratios first, on the standard output
  --help            this text

Exit code: 0 measured, 1 a call was not answered as it should be (or, with --check, a bound was exceeded), 2 the run could not start.`

interface Options {
  scenarios: Scenario[]
  rounds: number
  seconds: number
  watched: string[]
  isChecked: boolean
  ownClient: boolean
  isJson: boolean
  withPlugins: boolean
  before: string | undefined
  plot: string | undefined
  profile: string | undefined
}

interface Result {
  scenario: string
  ratios: Ratios | undefined
  rounds: Rounds
  judgements: Judgement[]
}

/** Writes progress to stderr, because the results go to stdout. */
const say = (line: string): void => console.error(line)

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      before: { type: 'string' },
      check: { type: 'boolean', default: false },
      'own-client': { type: 'boolean', default: false },
      profile: { type: 'string' },
      json: { type: 'boolean', default: false },
      plugins: { type: 'boolean', default: false },
      plot: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  const names = values.only?.split(',')
  const unknown = names?.find((name) => !NAMES.includes(name))
  if (unknown) throw new Error(`--only: there is no scenario "${unknown}".`)
  const rounds = Number(values.rounds ?? 3)
  const seconds = Number(values.seconds ?? (values.quick ? 2 : 4))
  if (!(Number.isInteger(rounds) && rounds >= 3)) throw new Error('--rounds must be 3 or more.')
  if (!(seconds >= 1 && seconds <= 600)) throw new Error('--seconds must be 1 to 600.')
  return {
    scenarios: SCENARIOS.filter(({ name, isLong }) => (names ? names.includes(name) : !(values.quick && isLong))),
    rounds,
    seconds,
    watched: names ? WATCHED.filter((name) => names.includes(name)) : values.quick ? [] : WATCHED,
    isChecked: values.check,
    ownClient: values['own-client'],
    isJson: values.json,
    withPlugins: values.plugins,
    before: values.before,
    plot: values.plot,
    profile: values.profile,
  }
}

/** Runs everything and returns the exit code. */
async function bench(options: Options): Promise<number> {
  if (process.platform !== 'linux') throw new Error('CPU is read from /proc: the benchmark needs Linux.')
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true })
  say('Starting the upstream, the peers and the gateway …')
  const upstream = await startServer('upstream-process.ts', {})
  const load = await startLoadGenerator(!options.ownClient)
  const subjects: Subject[] = []
  try {
    // Scenarios of sizes start gateways of their own.
    const needsPeers = options.scenarios.some(({ sizes }) => !sizes)
    if (needsPeers) subjects.push(...(await startPeers(upstream.url, options)))
    const gateway =
      needsPeers || options.watched.includes('idle')
        ? await startOurs(upstream.url, { profileFolder: options.profile })
        : undefined
    if (gateway) subjects.push(gateway)
    const results: Result[] = []
    for (const scenario of options.scenarios) {
      await play(upstream.child, scenario.play)
      const rounds = scenario.sizes
        ? await runSizes(scenario, upstream.url, load, options)
        : await runScenario(scenario, subjects, load, options)
      const judgements = judge(scenario, rounds)
      const ratios = scenario.sizes ? undefined : ratiosOf(rounds)
      results.push({ scenario: scenario.name, ratios, rounds, judgements })
      for (const line of scenarioLines(scenario, rounds, judgements)) (options.isJson ? say : console.log)(line)
    }
    const idle = gateway && options.watched.includes('idle') ? await watchIdle(gateway, options.isJson) : undefined
    const many = options.watched.includes('many') ? await watchMany(upstream.url, options.isJson) : undefined
    const waiting = options.watched.includes('waiting') ? await watchWaiting(options.isJson) : undefined
    if (options.plot !== undefined) writeFileSync(options.plot, plotCosts(results))
    if (options.isJson) {
      const ratios = Object.fromEntries(results.map(({ scenario, ratios: own }) => [scenario, own]))
      console.log(JSON.stringify({ ratios, load: load.name, results, idle, many, waiting }, null, 2))
    }
    return exitCode(results, options.isChecked)
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()))
    load.stop()
    upstream.child.kill('SIGKILL')
  }
}

async function startPeers(upstreamUrl: string, { withPlugins, before }: Options): Promise<Subject[]> {
  const peers = [await startDirect(upstreamUrl), await startNaive(upstreamUrl)]
  if (withPlugins) peers.push(await startPlugins(upstreamUrl))
  if (hasNginx()) peers.push(await startFloor(upstreamUrl))
  if (before !== undefined) peers.push(await startBefore(before, upstreamUrl))
  return peers
}

async function play(upstream: Awaited<ReturnType<typeof startServer>>['child'], asked: UpstreamPlay): Promise<void> {
  const playing = once(upstream, 'message', { signal: AbortSignal.timeout(10_000) })
  upstream.send(asked)
  await playing
}

/**
 * By then V8 has compiled nearly all code of a call. Larger scenarios need half a minute for that,
 * and servers live longer than a round.
 */
const FIRST_WARM_UP_SECONDS = 30
/** Warm-up of a scenario that runs through other code. */
const SCENARIO_WARM_UP_SECONDS = 6

const warmedUp = new Set<Subject>()

async function runScenario(
  scenario: Scenario,
  subjects: Subject[],
  load: LoadGenerator,
  { rounds: count, seconds }: Options,
): Promise<Rounds> {
  const { connections, target = 'call' } = scenario
  const plain = target === 'call' ? [] : subjects.filter(({ name }) => name === 'gateway')
  const runs = [
    ...subjects
      .filter(({ name }) => name !== FLOOR || target === 'call')
      .map((subject) => ({ name: subject.name, subject, target })),
    // The scenario's cost is compared with a plain call in the same round.
    ...plain.map((subject) => ({ name: 'call', subject, target: 'call' as const })),
  ]
  const rounds: Rounds = Object.fromEntries(runs.map(({ name }) => [name, []]))
  for (let round = 0; round < count; round += 1) {
    for (const { name, subject, target: called } of round % 2 === 0 ? runs : runs.toReversed()) {
      const ofScenario = round === 0 ? SCENARIO_WARM_UP_SECONDS : 1
      const warmUpSeconds = warmedUp.has(subject) ? ofScenario : FIRST_WARM_UP_SECONDS
      warmedUp.add(subject)
      const measured = await measure(subject, load, { target: called, connections, seconds, warmUpSeconds })
      rounds[name]?.push(measured)
      const failures = Object.entries(measured.failures).map(([what, times]) => `, ${times} × ${what}`)
      const bytes = Math.round((await redisBytes(subject)) / 1_048_576)
      say(
        `${scenario.name} ${round + 1}/${count} ${name}: ${measured.callsPerSecond.toFixed(0)} calls/s, ` +
          `${measured.cpu.sum.toFixed(3)} CPU-s per 1 000, Redis ${bytes} MB${failures.join('')}`,
      )
    }
  }
  return rounds
}

/** Measures the gateway in each size of this scenario. */
async function runSizes(
  scenario: Scenario,
  upstreamUrl: string,
  load: LoadGenerator,
  options: Options,
): Promise<Rounds> {
  const subjects: Subject[] = []
  try {
    for (const size of scenario.sizes ?? []) subjects.push(await startOurs(upstreamUrl, { size }))
    return await runScenario(scenario, subjects, load, options)
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()))
  }
}

async function watchWaiting(isJson: boolean): Promise<Waiting> {
  say('Watching calls that wait …')
  const waiting = await measureWaiting()
  const { calls, workerCpuPercent, webCpuPercent, commandsPerSecond, kilobytesPerCall } = waiting
  const line =
    `waiting: ${calls} calls, worker ${workerCpuPercent.toFixed(1)} % CPU, web ${webCpuPercent.toFixed(1)} % CPU, ` +
    `${commandsPerSecond.toFixed(0)} commands/s, ${kilobytesPerCall.toFixed(0)} KB a call`
  if (isJson) say(line)
  else console.log(line)
  return waiting
}

const IDLE_SECONDS = 20

/** Number of own APIs. With the 28 built-in APIs they are 280. */
const OWN_APIS = 252
/** By then the processes have read everything that they read when they start. */
const STARTED_SECONDS = 5

/** Watches an idle gateway with 280 APIs and a single worker. */
async function watchMany(upstreamUrl: string, isJson: boolean): Promise<Idle> {
  const gateway = await startOurs(upstreamUrl, { ownApis: OWN_APIS })
  try {
    await delay(STARTED_SECONDS * 1_000)
    return await watchIdle(gateway, isJson, `${OWN_APIS} own APIs, `)
  } finally {
    await gateway.stop()
  }
}

async function watchIdle(gateway: Subject, isJson: boolean, of = ''): Promise<Idle> {
  say(`Watching the gateway idle for ${IDLE_SECONDS} s …`)
  const idle = await measureIdle(gateway, IDLE_SECONDS)
  const { workerCpuPercent, webCpuPercent, connections, workerMegabytes, commandsPerSecond } = idle
  const line =
    `\n${of}idle: worker ${workerCpuPercent.toFixed(1)} % CPU and ${workerMegabytes.toFixed(0)} MB, web ` +
    `${webCpuPercent.toFixed(1)} % CPU, ${connections} connections to Redis, ${commandsPerSecond.toFixed(0)} commands/s`
  if (isJson) say(line)
  else console.log(line)
  return idle
}

function exitCode(results: Result[], isChecked: boolean): number {
  const failures = results.flatMap(({ rounds }) =>
    Object.values(rounds).flatMap((measurements) => measurements.flatMap(({ failures }) => Object.keys(failures))),
  )
  const exceeded = results.flatMap(({ judgements }) => judgements.filter(({ verdict }) => verdict === 'exceeded'))
  if (failures.length > 0) say(`Some calls did not get the expected answer: ${[...new Set(failures)].join(', ')}`)
  if (exceeded.length > 0) say(`${exceeded.length} bounds exceeded: ${exceeded.map(({ what }) => what).join('; ')}`)
  return failures.length > 0 || (isChecked && exceeded.length > 0) ? 1 : 0
}

try {
  const options = readOptions()
  if (options) process.exitCode = await bench(options)
  else console.log(HELP)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
