import { setTimeout as delay } from 'node:timers/promises'
import { mostInWindow, startArrivalClock } from '../support/arrival-clock.ts'
import { send, signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { atLeast, atMost, type Claim, FACT, FACT_BODY, type SoakScenario, UNLIMITED } from './scenario.ts'

const MAX = 10
const WINDOW_MS = 60_000
const WINDOWS = 4
const WORKERS = 8
const CALLS = 1_000

/** Time between two kills of a worker, and between two lines of progress, milliseconds. */
const KILL_EVERY_MS = 5_000
const SAY_EVERY_MS = 30_000

async function run(print: (line: string) => void): Promise<Claim[]> {
  const upstream = await startArrivalClock({ body: FACT_BODY })
  const gateway = await startGateway({
    workers: WORKERS,
    environment: {
      PLAN_LIMITS: UNLIMITED,
      LOG_LEVEL: 'warn',
      UPSTREAM_RANDOM_FACTS_URL: upstream.url,
      UPSTREAM_RANDOM_FACTS_CAPS: `concurrency=8,${MAX}/${WINDOW_MS / 1_000}`,
    },
  })
  try {
    const { live } = await signUp(gateway)
    const taken = await Promise.all(
      Array.from({ length: CALLS }, () => send(gateway, FACT, { key: live, headers: { prefer: 'respond-async' } })),
    )
    const queued = taken.filter(({ status }) => status === 202).length
    print(`${queued} of ${CALLS} calls queued, the others were refused because their permit would be too late`)
    let kills = 0
    const starting: Promise<unknown>[] = []
    const killing = setInterval(() => {
      gateway.workers.shift()?.kill('SIGKILL')
      kills += 1
      starting.push(gateway.startWorker())
    }, KILL_EVERY_MS)
    const endsAt = performance.now() + WINDOWS * WINDOW_MS
    while (performance.now() < endsAt) {
      await delay(Math.min(SAY_EVERY_MS, endsAt - performance.now()))
      print(`${(await upstream.arrivals()).length} requests at the upstream, ${kills} workers killed`)
    }
    clearInterval(killing)
    await Promise.all(starting)
    const arrivals = await upstream.arrivals()
    const elapsedMs = (arrivals.at(-1)?.at ?? 0) - (arrivals[0]?.at ?? 0)
    // All requests of all windows that began before the last arrival.
    const slots = MAX * (Math.floor(elapsedMs / WINDOW_MS) + 1)
    return [
      atMost(
        `requests in any ${WINDOW_MS / 1_000} s, with ${kills} workers killed`,
        mostInWindow(arrivals, WINDOW_MS),
        MAX,
      ),
      atLeast(`share of ${slots} slots that was used`, arrivals.length / slots, 0.9),
    ]
  } finally {
    await gateway.stop()
    await upstream.close()
  }
}

export const caps: SoakScenario = {
  name: 'caps',
  about: `${CALLS} calls against ${MAX} a minute, ${WORKERS} workers, one of them killed every ${KILL_EVERY_MS / 1_000} s`,
  minutes: 5,
  run,
}
