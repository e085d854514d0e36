import { startArrivalClock } from '../support/arrival-clock.ts'
import { signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { atLeast, atMost, type Claim, FACT, FACT_BODY, type SoakScenario, UNLIMITED } from './scenario.ts'
import { SteadyLoad, type SteadyResult } from './steady-load.ts'

const SECONDS = 60

/**
 * How long a request to the upstream takes, and how many run at once. They limit the calls a
 * second, and not the speed of the machine.
 */
const SERVICE_MS = 200
const CONCURRENCY = 8
const PEAK_PER_SECOND = (CONCURRENCY * 1_000) / SERVICE_MS

/** The gateway accepts a wait of five seconds. The rest is for a busy machine. */
const SERVED_MS_MAX = 7_000

async function run(print: (line: string) => void): Promise<Claim[]> {
  const upstream = await startArrivalClock({ body: FACT_BODY, delayMs: SERVICE_MS })
  const gateway = await startGateway({
    webNodes: 2,
    workers: 2,
    environment: {
      PLAN_LIMITS: UNLIMITED,
      LOG_LEVEL: 'warn',
      UPSTREAM_RANDOM_FACTS_URL: upstream.url,
      UPSTREAM_RANDOM_FACTS_CAPS: `concurrency=${CONCURRENCY},1000000/1`,
    },
  })
  const client = new SteadyLoad()
  try {
    const { live } = await signUp(gateway)
    const urls = gateway.urls.map((url) => url + FACT)
    const offer = (perSecond: number, seconds: number): Promise<SteadyResult> =>
      client.offer({ urls, headers: { 'x-api-key': live }, perSecond, seconds })
    await offer(PEAK_PER_SECOND / 2, 3)
    const peak = goodput(await offer(PEAK_PER_SECOND, SECONDS / 2))
    print(`at ${PEAK_PER_SECOND} calls a second: ${peak.toFixed(1)} served a second`)
    const overload = await offer(10 * PEAK_PER_SECOND, SECONDS)
    const { 200: served, '503 OVERLOADED': refused, ...others } = overload.outcomes
    print(`at ${10 * PEAK_PER_SECOND}: served ${JSON.stringify(served)}, refused ${JSON.stringify(refused)}`)
    return [
      atLeast(
        `share of the peak that was served under ten times as much for ${SECONDS} s`,
        goodput(overload) / peak,
        0.8,
      ),
      atMost('median of a refusal, ms', refused?.p50 ?? Number.NaN, 50),
      atMost('p99 of a served call, ms', served?.p99 ?? Number.NaN, SERVED_MS_MAX),
      atMost('answers of another kind', Object.keys(others).length, 0),
    ]
  } finally {
    client.stop()
    await gateway.stop()
    await upstream.close()
  }
}

function goodput({ outcomes, seconds }: SteadyResult): number {
  return (outcomes['200']?.count ?? 0) / seconds
}

export const overload: SoakScenario = {
  name: 'overload',
  about: `${10 * PEAK_PER_SECOND} calls a second for an upstream that serves ${PEAK_PER_SECOND}`,
  minutes: 2,
  run,
}
