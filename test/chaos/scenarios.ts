import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { atMost } from '../soak/scenario.ts'
import { recovery } from './measures.ts'
import { repeat } from './repeat.ts'
import { freeze, replaceNode, replaceWorker } from './rig.ts'
import { type ChaosScenario, USUAL } from './scenario.ts'
import { UPSTREAM_SCENARIOS } from './upstream-scenarios.ts'

/** Faults of processes and stores, and of upstreams; each takes less than a minute. */
export const SCENARIOS: ChaosScenario[] = [
  {
    name: 'kill-workers',
    about: 'kill -9 of a worker every 3 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: (rig) => repeat(3, 3_000, () => replaceWorker(rig, 'SIGKILL')),
    // A killed worker was running at most its share of the concurrency. While a worker is missing,
    // the other worker may be short of CPU.
    allow: { sentTwiceMax: 20, failedMax: 60 },
  },
  {
    name: 'kill-workers-busy',
    about: 'kill -9 of a worker every 3 seconds while calls travel in batches',
    // With a single node, three or more calls arrive together and share jobs.
    webNodes: 1,
    seconds: 14,
    perSecond: { weather: 600 },
    faults: (rig) => repeat(3, 3_000, () => replaceWorker(rig, 'SIGKILL')),
    // The killed worker may have had all requests that the cap allows at once. The worker that is
    // left may be short of CPU.
    allow: { sentTwiceMax: 3 * 64, failedMax: 4_200 },
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
    about: 'kill -9 of Redis, which is started again with its files',
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
    about: 'no bytes pass between the service and Redis for 5 seconds',
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
      // While Redis is full, no call can be queued. That affects the calls of these five seconds
      // and the calls right after.
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
    about: 'no bytes pass between the service and Postgres for 6 seconds, then its connections are reset',
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
  ...UPSTREAM_SCENARIOS,
]

/** A short course of every kind of fault, for the test suite. */
export const SHORT: ChaosScenario = {
  name: 'short',
  about: 'a killed worker, reset connections to both stores, a node that gets SIGTERM',
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

async function redisPid(folder: string): Promise<number> {
  return Number(await readFile(join(folder, 'redis', 'pid'), 'utf8'))
}
