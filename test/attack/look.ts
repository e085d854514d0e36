import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * Measures requests of another account in a thread of its own, because in the thread that sends the
 * attack it would measure how busy that thread is.
 */
const { url, token } = workerData as { url: string; token: string }
const latencies: number[] = []
let [failed, isOver] = [0, false]
parentPort?.once('message', () => {
  isOver = true
})
while (!isOver) {
  const startedAt = performance.now()
  try {
    const signal = AbortSignal.timeout(20_000)
    const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` }, signal })
    await response.arrayBuffer()
    if (response.status !== 200) failed += 1
    latencies.push(performance.now() - startedAt)
  } catch {
    failed += 1
  }
  await delay(20)
}
parentPort?.postMessage({ latencies, failed })
