import { setTimeout as delay } from 'node:timers/promises'
import { send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { type Outcome, residentMb, type Scenario } from './scenario.ts'

const ACCOUNTS = 10
const CALLS_OF_EACH = 4

/** Events of an answer, which are about 28 MB of JSON. The upstream may send more. */
const EVENTS = 100
const MARKETS_OF_EACH = 700

/** Memory of a worker's container (768 MiB), in MB. Node takes half of it for its heap. */
const MEMORY_MB_MAX = 805
const HEAP_MIB_MAX = 384

/** Asynchronous calls of many accounts at once to the API whose answers may be the largest. */
export const largeAnswers: Scenario = {
  name: 'large-answers',
  claim: `${ACCOUNTS * CALLS_OF_EACH} answers of 28 MB, requested by ${ACCOUNTS} accounts at once, leave a worker below ${MEMORY_MB_MAX} MB`,
  execArgv: [`--max-old-space-size=${HEAP_MIB_MAX}`],
  slugs: ['prediction-markets'],
  environment: { UPSTREAM_PREDICTION_MARKETS_CAPS: 'concurrency=10,100000/60' },
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    const body = Buffer.from(JSON.stringify(events()))
    upstream?.play('prediction-markets', (_arrival, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    })
    const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => signUp(gateway, 'business')))
    const pid = gateway.workers[0]?.pid ?? 0
    const memoryBefore = await residentMb(pid)
    const taken = await Promise.all(
      Array.from({ length: ACCOUNTS * CALLS_OF_EACH }, (_, index) =>
        send(gateway, `/v1/call/prediction-markets/events?nonce=${index}`, {
          key: accounts[index % ACCOUNTS]?.live ?? '',
          headers: { prefer: 'respond-async' },
        }).then(({ status, headers }) => {
          if (status !== 202) throw new Error(`an asynchronous call was answered ${status}`)
          return { location: headers.get('location') ?? '', key: accounts[index % ACCOUNTS]?.live ?? '' }
        }),
      ),
    )
    let memoryMax = memoryBefore
    const open = [...taken]
    const end = performance.now() + seconds * 12_000
    while (open.length > 0 && performance.now() < end) {
      memoryMax = Math.max(memoryMax, await residentMb(pid))
      await delay(25)
      const [call] = open
      if (call && (await isEnded(gateway, call))) open.shift()
    }
    return {
      isPassed: memoryMax < MEMORY_MB_MAX && open.length === 0,
      figures: {
        'MB of an answer': Math.round(body.length / 1e6),
        calls: taken.length,
        'of them not ended': open.length,
        'memory before MB': Math.round(memoryBefore),
        'memory at most MB': Math.round(memoryMax),
      },
    }
  },
}

async function isEnded(gateway: Gateway, { location, key }: { location: string; key: string }): Promise<boolean> {
  const { status } = await send(gateway, new URL(location, gateway.url).pathname, { key })
  return status !== 202
}

/** The upstream's answer: events with all their markets. */
function events() {
  const market = (index: number) => ({
    id: String(index),
    question: `Will the value be above ${index} on the last day of the month?`,
    slug: `will-the-value-be-above-${index}`,
    outcomes: '["Yes", "No"]',
    outcomePrices: '["0.25", "0.75"]',
    volumeNum: index * 10.5,
    active: true,
    closed: false,
    ...{ conditionId: '0x0123456789abcdef', resolutionSource: '', startDate: '2026-01-02T03:04:05Z' },
    ...{ fee: '0', marketType: 'normal', enableOrderBook: true, acceptingOrders: true, rewardsMinSize: 50 },
  })
  const markets = Array.from({ length: MARKETS_OF_EACH }, (_, index) => market(index))
  return Array.from({ length: EVENTS }, (_, index) => ({ id: String(index), title: 'Values', slug: 'values', markets }))
}
