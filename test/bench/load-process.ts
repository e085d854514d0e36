import { Agent, get } from 'node:http'
import type { LoadRequest, LoadResult } from './load.ts'
import { fillUrl } from './target.ts'

/**
 * A load generator in a process of its own. Each of its connections sends the next request after
 * the answer to the last.
 */
process.on('message', async (request: LoadRequest) => process.send?.(await run(request)))
process.on('disconnect', () => process.exit(0))

async function run({ urls, headers, connections, seconds, status, firstNumber }: LoadRequest): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const latencies: number[] = []
  const failures = new Map<string, number>()
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1_000
  let sent = firstNumber
  const one = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      sent += 1
      const url = fillUrl(urls[sent % urls.length] ?? '', sent)
      const sentAt = performance.now()
      const outcome = await ask(url, headers, agent)
      if (outcome === String(status)) latencies.push(performance.now() - sentAt)
      else failures.set(outcome, (failures.get(outcome) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  const tookSeconds = (performance.now() - startedAt) / 1_000
  agent.destroy()
  latencies.sort((left, right) => left - right)
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return {
    calls: latencies.length,
    callsPerSecond: latencies.length / tookSeconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    failures: Object.fromEntries(failures),
  }
}

function ask(url: string, headers: Record<string, string>, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const request = get(url, { headers, agent }, (response) => {
      response.resume()
      response.on('end', () => resolve(String(response.statusCode)))
      response.on('error', (error) => resolve(error.message))
    })
    request.on('error', (error) => resolve(error.message))
  })
}

process.send?.({ ready: true })
