import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { atLeast, atMost, type Claim } from '../soak/scenario.ts'
import { type Allowances, checkConservation } from './conservation.ts'
import type { CallRecord, LoadOptions } from './load.ts'
import { freeze, type Rig, replaceNode, replaceWorker, startRig } from './rig.ts'

/** One fault, or one course of faults, under steady load. */
export interface ChaosScenario {
  name: string
  about: string
  /** Length of the load, seconds. */
  seconds: number
  perSecond: LoadOptions['perSecond']
  patienceMs?: number
  webNodes?: number
  workers?: number
  environment?: Record<string, string>
  /** Runs beside the load; the load goes on until its time is over. */
  faults: (rig: Rig) => Promise<void>
  allow: Allowances
  /** What this scenario shows beyond the law. */
  claims?: (records: CallRecord[], rig: Rig) => Claim[]
}

const USUAL = { weather: 40, 'air-quality': 1 }

/** Faults begin when the load has run for a while, milliseconds. */
const BEFORE_MS = 2_000

export const SCENARIOS: ChaosScenario[] = [
  {
    name: 'kill-workers',
    about: 'kill -9 of a worker every 3 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: (rig) => repeat(3, 3_000, () => replaceWorker(rig, 'SIGKILL')),
    // What was in flight in a killed worker: its share of the concurrency. While one is missing the other may be short of CPU.
    allow: { sentTwiceMax: 20, failedMax: 60 },
  },
  {
    name: 'kill-nodes',
    about: 'kill -9 of an API node every 4 seconds',
    seconds: 12,
    perSecond: USUAL,
    faults: (rig) => repeat(2, 4_000, () => replaceNode(rig, 'SIGKILL')),
    allow: { breaksConnections: true },
    claims: (records) => [
      atMost('calls whose connection broke', records.filter(({ outcome }) => !/^\d/.test(outcome)).length, 40),
    ],
  },
  {
    name: 'rolling',
    about: 'rolling restart of two nodes and two workers by SIGTERM',
    seconds: 25,
    perSecond: USUAL,
    faults: async (rig) => {
      for (let count = 0; count < 2; count += 1) {
        await replaceWorker(rig, 'SIGTERM')
        await replaceNode(rig, 'SIGTERM')
      }
    },
    allow: { failedMax: 0 },
  },
  {
    name: 'redis-kill',
    about: 'kill -9 of Redis, started again with what it had on disk',
    seconds: 14,
    perSecond: USUAL,
    faults: (rig) => rig.services.restartRedis({ isWiped: false }),
    allow: { sentTwiceMax: 20, losesCounts: true },
    claims: (records) => [recovery(records, 8)],
  },
  {
    name: 'redis-freeze',
    about: 'Redis stopped for 3 seconds',
    seconds: 12,
    perSecond: USUAL,
    faults: async ({ services }) => freeze(await redisPid(services.folder), 3_000),
    allow: { sentTwiceMax: 20 },
    claims: (records) => [recovery(records, 5)],
  },
  {
    name: 'redis-black-hole',
    about: 'nothing passes between the service and Redis for 5 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: async ({ redis }) => {
      redis.blackHole()
      await delay(5_000)
      redis.heal()
    },
    allow: { sentTwiceMax: 20 },
    claims: (records) => [recovery(records, 8)],
  },
  {
    name: 'redis-reset',
    about: 'all connections to Redis reset, three times',
    seconds: 12,
    perSecond: USUAL,
    faults: ({ redis }) => repeat(3, 2_000, async () => redis.reset()),
    allow: { sentTwiceMax: 20, losesCounts: true, failedMax: 60 },
  },
  {
    name: 'redis-slow',
    about: 'Redis 10 ms away in each direction for 6 seconds',
    seconds: 12,
    perSecond: USUAL,
    faults: async ({ redis }) => {
      redis.delay(10)
      await delay(6_000)
      redis.heal()
    },
    allow: { sentTwiceMax: 0 },
  },
  {
    name: 'redis-full',
    about: 'Redis at its memory limit for 5 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: async ({ store }) => {
      const [, before = '0'] = (await store.config('GET', 'maxmemory')) as string[]
      await store.config('SET', 'maxmemory', '1mb')
      await delay(5_000)
      await store.config('SET', 'maxmemory', before)
    },
    allow: { sentTwiceMax: 0 },
    claims: (records) => [
      atMost('longest answer, seconds', Math.max(...records.map(({ tookMs }) => tookMs)) / 1_000, 12),
      // Nothing can be queued while it is full: those five seconds, and what comes after.
      recovery(records, 7),
    ],
  },
  {
    name: 'postgres-cut',
    about: 'Postgres unreachable for 5 seconds, its connections reset',
    seconds: 12,
    perSecond: USUAL,
    faults: async ({ postgres }) => {
      postgres.cut()
      await delay(5_000)
      postgres.heal()
    },
    allow: { failedMax: 0 },
  },
  {
    name: 'postgres-black-hole',
    about: 'nothing passes between the service and Postgres for 6 seconds, then its connections are reset',
    seconds: 14,
    perSecond: USUAL,
    faults: async ({ postgres }) => {
      postgres.blackHole()
      await delay(6_000)
      postgres.reset()
      postgres.heal()
    },
    allow: { failedMax: 0 },
  },
  {
    name: 'upstream-blip',
    about: 'an upstream that resets its connections for half a second',
    seconds: 12,
    perSecond: USUAL,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'reset' })
      await delay(500)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [recovery(weatherOf(records), 2.5)],
  },
  {
    name: 'upstream-hang',
    about: 'an upstream that hangs for 12 seconds beside a healthy one',
    seconds: 26,
    perSecond: { weather: 10, 'air-quality': 1 },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'hang' })
      await delay(12_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [
      atMost(
        'answers of 503 for what the upstream did',
        weatherOf(records).filter(({ outcome }) => outcome.startsWith('503')).length,
        0,
      ),
      atMost('longest answer, seconds', Math.max(...weatherOf(records).map(({ tookMs }) => tookMs)) / 1_000, 22),
      atMost('p99 of the healthy upstream, ms', percentile(othersOf(records), 0.99), 12_000),
    ],
  },
  {
    name: 'upstream-half',
    about: 'an upstream that fails every other request for 8 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'half' })
      await delay(8_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [atLeast('share answered', shareAnswered(weatherOf(records)), 0.5)],
  },
  {
    name: 'upstream-429',
    about: 'an upstream that answers 429 with Retry-After: 5 for 6 seconds',
    seconds: 18,
    perSecond: { weather: 10, 'air-quality': 1 },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'limited-5s' })
      await delay(6_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 100 },
    claims: (records) => [recovery(weatherOf(records), 14)],
  },
  {
    name: 'overload',
    about: 'ten times what the upstream can take',
    seconds: 12,
    perSecond: { weather: 200, 'air-quality': 1 },
    environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=4,1000000/60' },
    faults: async ({ upstream }) => upstream.behave({ flow: 'weather', kind: 'ok', delayMs: 200 }),
    allow: {},
    claims: (records) => [
      atLeast('calls answered a second', records.filter(({ outcome }) => outcome === '200').length / 12, 16),
      atMost(
        'median refusal, ms',
        percentile(
          records.filter(({ outcome }) => outcome.startsWith('503')),
          0.5,
        ),
        250,
      ),
    ],
  },
  {
    name: 'leaving',
    about: 'callers that leave after one second while the upstream is slow',
    seconds: 10,
    perSecond: { weather: 200 },
    patienceMs: 1_000,
    environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=8,1000000/60' },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'ok', delayMs: 900 })
      await delay(5_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { callersLeave: true },
    claims: (records) => [atLeast('calls answered in the last second', lastAnswered(records), 100)],
  },
]

/** A short course of every kind of fault, for the test suite. */
export const SHORT: ChaosScenario = {
  name: 'short',
  about: 'a killed worker, reset connections to both stores, a node told to end',
  seconds: 6,
  perSecond: { weather: 15, 'air-quality': 1 },
  faults: async (rig) => {
    rig.redis.reset()
    rig.postgres.reset()
    await replaceWorker(rig, 'SIGKILL')
    await replaceNode(rig, 'SIGTERM')
  },
  allow: { sentTwiceMax: 10 },
}

/** Runs one scenario from a fresh deployment to its claims. */
export async function runScenario(
  scenario: ChaosScenario,
  { seed, say }: { seed: number; say: (line: string) => void },
): Promise<Claim[]> {
  const { webNodes = 2, workers = 2, environment = {} } = scenario
  const rig = await startRig({ webNodes, workers, seed, say, environment })
  try {
    const { perSecond, seconds, patienceMs } = scenario
    const offering = rig.offer({ perSecond, seconds, ...(patienceMs === undefined ? {} : { patienceMs }) })
    await delay(BEFORE_MS)
    await scenario.faults(rig)
    const records = await offering
    return [...(await checkConservation(rig, records, scenario.allow)), ...(scenario.claims?.(records, rig) ?? [])]
  } finally {
    await rig.stop()
  }
}

async function repeat(times: number, everyMs: number, fault: () => Promise<void>): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    const startedAt = performance.now()
    await fault()
    await delay(Math.max(0, everyMs - (performance.now() - startedAt)))
  }
}

async function redisPid(folder: string): Promise<number> {
  return Number(await readFile(join(folder, 'redis', 'pid'), 'utf8'))
}

const weatherOf = (records: CallRecord[]): CallRecord[] => records.filter(({ flow }) => flow === 'weather')
const othersOf = (records: CallRecord[]): CallRecord[] => records.filter(({ flow }) => flow !== 'weather')

/** Longest time without an answer of 200 between two sent calls that got one, seconds. */
function recovery(records: CallRecord[], maxSeconds: number): Claim {
  const good = records.filter(({ outcome }) => outcome === '200').map(({ sentAt, tookMs }) => sentAt + tookMs)
  const last = Math.max(...records.map(({ sentAt }) => sentAt))
  const moments = [...good.sort((left, right) => left - right), last]
  const gaps = moments.map((at, index) => at - (moments[index - 1] ?? at))
  return atMost('longest time without a success, seconds', Math.max(0, ...gaps) / 1_000, maxSeconds)
}

function shareAnswered(records: CallRecord[]): number {
  return records.filter(({ outcome }) => outcome === '200').length / records.length
}

function lastAnswered(records: CallRecord[]): number {
  const last = Math.max(...records.map(({ sentAt }) => sentAt))
  return records.filter(({ outcome, sentAt }) => outcome === '200' && sentAt > last - 1_000).length
}

function percentile(records: CallRecord[], share: number): number {
  const times = records.map(({ tookMs }) => tookMs).sort((left, right) => left - right)
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
}
