import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { atLeast, exactly } from '../soak/scenario.ts'
import { until } from '../support/gateway.ts'
import { recovery, weatherOf } from './measures.ts'
import { type Rig, replaceNode, replaceWorker } from './rig.ts'
import { type ChaosScenario, USUAL } from './scenario.ts'

const STEP_CLOCK = new URL('./step-clock.ts', import.meta.url).href

/** Faults that take a minute or more to show, or that need the right to mount. */
export const LONG_SCENARIOS: ChaosScenario[] = [
  {
    name: 'crowd',
    about: '2,000 callers wait at one upstream, and half of them leave',
    seconds: 10,
    perSecond: { weather: 200 },
    impatient: { share: 0.5, patienceMs: 6_000 },
    // Without the callers that leave, the queue is never longer than the time that a caller waits.
    environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=64,60/1' },
    faults: async () => undefined,
    allow: { callersLeave: true },
    claims: (records) => {
      const countOf = (what: string) => records.filter(({ outcome }) => outcome === what).length
      return [
        atLeast('callers that left', countOf('left'), 400),
        atLeast('callers that were answered', countOf('200'), 600),
        // If the slot of a call would come too late, the call is refused on arrival. All other
        // calls whose callers stay are answered.
        exactly('accepted callers that stayed and got no answer', countOf('503 DEADLINE_EXCEEDED'), 0),
      ]
    },
  },
  {
    name: 'clock-steps',
    about: 'the wall clock steps by a minute, forward and back: of the workers, then of the API nodes',
    seconds: 30,
    perSecond: USUAL,
    environment: { NODE_OPTIONS: `--import=${STEP_CLOCK}`, CLOCK_STEPS_MS: '60000,-120000,60000' },
    faults: async ({ gateway }) => {
      for (const processes of [gateway.workers, gateway.web]) {
        for (let step = 0; step < 3; step += 1) {
          for (const child of processes) child.kill('SIGUSR2')
          await delay(4_000)
        }
      }
    },
    allow: { failedMax: 0 },
  },
  {
    name: 'upstream-429-for-a-minute',
    about: 'an upstream that answers 429 without Retry-After for 2 seconds',
    seconds: 75,
    perSecond: { weather: 10, 'air-quality': 1 },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'limited' })
      await delay(2_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 100 },
    claims: (records) => [recovery(weatherOf(records), 66)],
  },
  {
    name: 'disk-full',
    about: 'no space left for Redis and Postgres for 5 seconds (needs the right to mount)',
    seconds: 16,
    perSecond: USUAL,
    diskMb: 320,
    faults: async ({ disk }) => {
      await disk?.fill()
      await delay(5_000)
      await disk?.free()
    },
    allow: { sentTwiceMax: 20 },
    claims: (records) => [recovery(records, 10)],
  },
  {
    name: 'postgres-half-a-minute',
    about: 'no bytes pass between the service and Postgres for 30 seconds; afterwards the log of calls has all rows',
    seconds: 42,
    perSecond: USUAL,
    faults: async ({ postgres }) => {
      postgres.blackHole()
      await delay(30_000)
      postgres.reset()
      postgres.heal()
    },
    allow: { failedMax: 0 },
    claims: async (records, rig) => {
      const calls = records.length + rig.warmUps
      return [exactly('calls without a row in the log', calls - (await loggedCalls(rig, calls)), 0)]
    },
  },
  {
    name: 'rolling-5000',
    about: '5,000 calls while two nodes and two workers are replaced by SIGTERM, over and over',
    seconds: 122,
    perSecond: USUAL,
    faults: (rig) => keepReplacing(rig, 112_000),
    allow: { failedMax: 0 },
  },
  {
    name: 'upgrade',
    about: '5,000 calls while two nodes and two workers of another version (--before) are replaced by this one',
    seconds: 122,
    perSecond: USUAL,
    isUpgrade: true,
    faults: async (rig) => {
      for (const replace of [replaceWorker, replaceNode, replaceWorker, replaceNode]) {
        await delay(10_000)
        await replace(rig, 'SIGTERM', 0)
      }
    },
    allow: { failedMax: 0 },
  },
]

/**
 * Waits until the log has a row for each call, ten seconds at most, and returns the number of its
 * rows.
 */
async function loggedCalls({ services }: Rig, calls: number): Promise<number> {
  const db = openDatabase(services.databaseUrl, createLog({ level: 'silent', pretty: false }, 'test'))
  const count = async () => Number((await db.selectFrom('call_log').select(({ fn }) => fn.countAll().as('rows')).executeTakeFirstOrThrow()).rows) // biome-ignore format: one line
  try {
    await until(async () => (await count()) >= calls, 10_000).catch(() => undefined)
    return await count()
  } finally {
    await db.destroy()
  }
}

/** Replaces a worker and a node in turn until the time is over. */
async function keepReplacing(rig: Rig, ms: number): Promise<void> {
  let replaced = 0
  for (const endsAt = performance.now() + ms; performance.now() < endsAt; replaced += 2) {
    await replaceWorker(rig, 'SIGTERM')
    await replaceNode(rig, 'SIGTERM')
  }
  rig.say(`${replaced} processes were replaced`)
}
