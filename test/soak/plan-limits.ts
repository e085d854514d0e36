import { startArrivalClock } from '../support/arrival-clock.ts'
import { signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { ask } from './ask.ts'
import { type Claim, exactly, FACT, FACT_BODY, type SoakScenario } from './scenario.ts'

const NODES = 4
const WIDE = { perMonth: 1_000_000, inFlight: 100_000 }
const TIERS = [
  { tier: 'developer', limit: 10, rounds: 50 },
  { tier: 'pro', limit: 100, rounds: 50 },
  { tier: 'business', limit: 500, rounds: 10 },
] as const

async function run(print: (line: string) => void): Promise<Claim[]> {
  const upstream = await startArrivalClock({ body: FACT_BODY })
  const gateway = await startGateway({
    webNodes: NODES,
    environment: {
      PLAN_LIMITS: JSON.stringify({
        Free: { ...WIDE, perMinute: 10 },
        Pro: { ...WIDE, perMinute: 100 },
        Elite: { ...WIDE, perMinute: 500 },
      }),
      LOG_LEVEL: 'error',
      UPSTREAM_RANDOM_FACTS_URL: upstream.url,
      UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=64,1000000/1',
    },
  })
  try {
    const claims: Claim[] = []
    for (const { tier, limit, rounds } of TIERS) {
      let exact = 0
      for (let round = 1; round <= rounds; round += 1) {
        const { live } = await signUp(gateway, tier)
        const before = (await upstream.arrivals()).length
        const { 200: served, ...others } = await burst(gateway, live, 20 * limit)
        const arrived = (await upstream.arrivals()).length - before
        if (served === limit && arrived === limit) exact += 1
        else print(`${served} served, ${arrived} sent of ${limit} in round ${round}; ${JSON.stringify(others)}`)
        if (round % 10 === 0) print(`${limit} a minute: ${exact} of ${round} rounds exact`)
      }
      claims.push(exactly(`rounds with exactly ${limit} of ${20 * limit} calls let through`, exact, rounds))
    }
    return claims
  } finally {
    await gateway.stop()
    await upstream.close()
  }
}

/**
 * Sends calls at once, over all nodes.
 * @returns the number of calls by outcome
 */
async function burst({ urls }: Gateway, key: string, count: number): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {}
  const call = async (index: number): Promise<void> => {
    const outcome = await ask(`${urls[index % urls.length]}${FACT}`, { 'x-api-key': key })
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  await Promise.all(Array.from({ length: count }, (_, index) => call(index)))
  return outcomes
}

export const planLimits: SoakScenario = {
  name: 'plan-limits',
  about: `20 N simultaneous calls over ${NODES} nodes: ${TIERS.map(({ limit, rounds }) => `${rounds} rounds of N = ${limit}`).join(', ')}`,
  minutes: 1,
  run,
}
