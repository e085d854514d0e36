import { startArrivalClock } from '../support/arrival-clock.ts'
import { signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { atLeast, atMost, type Claim, FACT, FACT_BODY, type SoakScenario, UNLIMITED } from './scenario.ts'
import { SteadyLoad, type SteadyResult } from './steady-load.ts'

const SECONDS = 120
const NOISY_PER_SECOND = 500

async function run(print: (line: string) => void): Promise<Claim[]> {
  const upstream = await startArrivalClock({ body: FACT_BODY, delayMs: 100 })
  const gateway = await startGateway({
    webNodes: 2,
    workers: 2,
    environment: {
      PLAN_LIMITS: UNLIMITED,
      LOG_LEVEL: 'warn',
      UPSTREAM_RANDOM_FACTS_URL: upstream.url,
      UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=8,20/1',
    },
  })
  const [quietClient, noisyClient] = [new SteadyLoad(), new SteadyLoad()]
  try {
    const [quiet, noisy] = await Promise.all([signUp(gateway), signUp(gateway)])
    const urls = gateway.urls.map((url) => url + FACT)
    const ask = (): Promise<SteadyResult> =>
      quietClient.offer({ urls, headers: { 'x-api-key': quiet.live }, perSecond: 1, seconds: SECONDS })
    await quietClient.offer({ urls, headers: { 'x-api-key': quiet.live }, perSecond: 5, seconds: 4 })
    const alone = await ask()
    print(`the quiet account alone: ${JSON.stringify(alone.outcomes)}`)
    const noise = noisyClient.offer({
      urls,
      headers: { 'x-api-key': noisy.live },
      perSecond: NOISY_PER_SECOND,
      seconds: SECONDS + 2,
    })
    const beside = await ask()
    print(`beside the noisy one: ${JSON.stringify(beside.outcomes)}`)
    const { outcomes } = await noise
    print(`the noisy one: ${JSON.stringify(outcomes)}`)
    const [before, after] = [alone.outcomes['200'], beside.outcomes['200']]
    return [
      atLeast('share of the quiet calls that was served', (after?.count ?? 0) / beside.sent, 1),
      atMost('p99 of the quiet account beside the noisy one, against alone', (after?.p99 ?? 0) / (before?.p99 ?? 1), 2),
      atMost(
        'calls that were accepted and then missed their deadline',
        outcomes['503 DEADLINE_EXCEEDED']?.count ?? 0,
        0,
      ),
      atMost('share of the cap that the noisy one had', (outcomes['200']?.count ?? 0) / (20 * SECONDS), 0.55),
    ]
  } finally {
    for (const client of [quietClient, noisyClient]) client.stop()
    await gateway.stop()
    await upstream.close()
  }
}

export const noisy: SoakScenario = {
  name: 'noisy',
  about: `an account with ${NOISY_PER_SECOND} calls a second beside one with 1, on an upstream of 20 a second`,
  minutes: 5,
  run,
}
