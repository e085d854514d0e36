/**
 * Goodput under overload: calls served a second at the gateway's peak, and at ten times that. Prints one JSON line;
 * ends with 1 when less than 80 % of the peak is left, or a refusal took too long. `node test/bench/overload.ts [seconds]`
 */
import { Agent, request } from 'undici'
import { signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'

const SECONDS = Number(process.argv[2] ?? 10)

/** One upstream request takes this long and so many run at once: the peak is theirs, not the machine's. */
const SERVICE_MS = 100
const CONCURRENCY = 8

const UNLIMITED = JSON.stringify({ Free: { perMinute: 10_000_000, inFlight: 1_000_000, perMonth: 100_000_000 } })

interface Round {
  sent: number
  served: number
  servedPerSecond: number
  refused: number
  others: Record<string, number>
  servedP99Ms: number
  refusedP50Ms: number
  refusedP99Ms: number
}

function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right)
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
}

const upstream = await startUpstreamServer()
upstream.play('random-facts', async () => {
  await new Promise((resolve) => setTimeout(resolve, SERVICE_MS))
  return { id: 'a', text: 't', source: 's', source_url: 'u' }
})
const gateway = await startGateway({
  webNodes: 2,
  workers: 2,
  environment: {
    ...upstream.environment('random-facts'),
    PLAN_LIMITS: UNLIMITED,
    LOG_LEVEL: 'warn',
    UPSTREAM_RANDOM_FACTS_CAPS: `concurrency=${CONCURRENCY},1000000/1`,
  },
})
const account = await signUp(gateway)
const dispatcher = new Agent({ connections: 4_000, pipelining: 1 })

/** Sends calls at a steady rate, whatever becomes of them. */
async function offer(perSecond: number, seconds: number): Promise<Round> {
  const served: number[] = []
  const refused: number[] = []
  const others: Record<string, number> = {}
  const calls: Promise<void>[] = []
  const startedAt = performance.now()
  let sent = 0
  const call = async (index: number): Promise<void> => {
    const sentAt = performance.now()
    const url = `${gateway.urls[index % gateway.urls.length]}/v1/call/random-facts/random`
    const { statusCode, body } = await request(url, { dispatcher, headers: { 'x-api-key': account.live } })
    const text = await body.text()
    const tookMs = performance.now() - sentAt
    if (statusCode === 200) served.push(tookMs)
    else if (text.includes('OVERLOADED')) refused.push(tookMs)
    else others[statusCode] = (others[statusCode] ?? 0) + 1
  }
  while (performance.now() - startedAt < seconds * 1_000) {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond)
    for (; sent < due; sent += 1) calls.push(call(sent))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all(calls)
  const tookSeconds = (performance.now() - startedAt) / 1_000
  return {
    sent,
    served: served.length,
    servedPerSecond: Math.round((served.length / tookSeconds) * 10) / 10,
    refused: refused.length,
    others,
    servedP99Ms: percentile(served, 0.99),
    refusedP50Ms: percentile(refused, 0.5),
    refusedP99Ms: percentile(refused, 0.99),
  }
}

const possible = (CONCURRENCY * 1_000) / SERVICE_MS
await offer(possible / 2, 2)
const peak = await offer(possible, SECONDS)
const overload = await offer(possible * 10, SECONDS)
await gateway.stop()
await upstream.close()
await dispatcher.close()
const share = overload.servedPerSecond / peak.servedPerSecond
console.log(JSON.stringify({ seconds: SECONDS, offered: [possible, possible * 10], peak, overload, share }))
process.exit(share >= 0.8 && overload.refusedP99Ms < 1_000 ? 0 : 1)
