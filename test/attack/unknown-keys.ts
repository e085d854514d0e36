import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createApiKey } from '../../src/accounts/api-key.ts'
import { send, signUp } from '../support/client.ts'
import { type Outcome, percentile, type Scenario } from './scenario.ts'

const CONNECTIONS = 4
const MEDIAN_MS_MAX = 50

/** Keys that nobody has, with a right checksum, as fast as the node answers them. */
export const unknownKeys: Scenario = {
  name: 'unknown-keys',
  claim: `${CONNECTIONS} connections with invented keys do not slow account routes`,
  environment: { UNKNOWN_KEYS_PER_MINUTE: '120' },
  run: async (gateway, seconds): Promise<Outcome> => {
    const { token } = await signUp(gateway)
    const me = async (): Promise<number> => {
      const startedAt = performance.now()
      const { status } = await send(gateway, '/v1/me', { token, signal: AbortSignal.timeout(20_000) })
      if (status !== 200) throw new Error(`GET /v1/me was answered ${status}`)
      return performance.now() - startedAt
    }
    await me()
    const answers = { count: 0 }
    const sockets = Array.from({ length: CONNECTIONS }, () => flood(gateway.url, answers))
    const latencies: number[] = []
    const end = performance.now() + seconds * 1_000
    while (performance.now() < end) {
      latencies.push(await me())
      await delay(10)
    }
    for (const socket of sockets) socket.destroy()
    const medianMs = percentile(latencies, 0.5)
    return {
      isPassed: medianMs < MEDIAN_MS_MAX,
      figures: {
        'refused keys': answers.count,
        'requests to /v1/me': latencies.length,
        'p50 ms': Math.round(medianMs),
        'p99 ms': Math.round(percentile(latencies, 0.99)),
      },
    }
  },
}

/** Sends requests one after the other, a new request after each answer. */
function flood(url: string, answers: { count: number }): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const request = () =>
    `GET /v1/call/trivia/questions HTTP/1.1\r\nHost: attack\r\nX-Api-Key: ${createApiKey('live')}\r\n\r\n`
  const bundle = (count: number) => Array.from({ length: count }, request).join('')
  socket.on('error', () => undefined)
  socket.on('data', (data) => {
    const count = data.toString('latin1').split('HTTP/1.1 ').length - 1
    answers.count += count
    socket.write(bundle(count))
  })
  socket.write(bundle(32))
  return socket
}
