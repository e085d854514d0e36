import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { send, signUp } from '../support/client.ts'
import { type Outcome, percentile, residentMb, type Scenario } from './scenario.ts'

const CONNECTIONS = 16
const REQUESTS = 1_800

const P99_MS_MAX = 1_000
const MEMORY_MB_MAX = 600

/** Anonymous requests, one after the other, on connections that read no answer. */
export const pipelining: Scenario = {
  name: 'pipelining',
  claim: `${CONNECTIONS} connections with ${REQUESTS} unread requests each do not slow calls of other accounts, and use no memory`,
  run: async (gateway, seconds): Promise<Outcome> => {
    const account = await signUp(gateway, 'business')
    const call = async (): Promise<number> => {
      const startedAt = performance.now()
      const path = `/v1/call/currency/latest?nonce=${startedAt}`
      const { status } = await send(gateway, path, { key: account.test, signal: AbortSignal.timeout(20_000) })
      if (status !== 200) throw new Error(`a call of another account was answered ${status}`)
      return performance.now() - startedAt
    }
    await call()
    const pid = gateway.web[0]?.pid ?? 0
    const memoryBefore = await residentMb(pid)
    const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => flood(gateway.url)))
    const latencies: number[] = []
    let memoryMax = 0
    const end = performance.now() + seconds * 1_000
    while (performance.now() < end) {
      latencies.push(await call())
      memoryMax = Math.max(memoryMax, await residentMb(pid))
      await delay(25)
    }
    for (const socket of sockets) socket.destroy()
    const p99Ms = percentile(latencies, 0.99)
    return {
      isPassed: p99Ms < P99_MS_MAX && memoryMax < MEMORY_MB_MAX,
      figures: {
        calls: latencies.length,
        'p50 ms': Math.round(percentile(latencies, 0.5)),
        'p99 ms': Math.round(p99Ms),
        'memory before MB': Math.round(memoryBefore),
        'memory at most MB': Math.round(memoryMax),
      },
    }
  },
}

/** Opens a connection that sends its requests and reads nothing. */
async function flood(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.pause()
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nHost: attack\r\n\r\n'.repeat(REQUESTS))
  return socket
}
