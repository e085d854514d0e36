import { once } from 'node:events'
import { connect } from 'node:net'
import { outputUntilNow, send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import type { Outcome, Scenario } from './scenario.ts'

const CONNECTIONS = 100
const PIPELINED = 8

/**
 * Most lines that an account's refused calls may add to the log in a second: samples, and a count.
 */
const LINES_A_SECOND_MAX = 20

/** Refused calls without end, and calls whose callers leave before the answer begins. */
export const logFlood: Scenario = {
  name: 'log-flood',
  claim:
    'refused calls of an account write only a few log lines a second, and callers that leave cause no error in the log',
  run: async (gateway, seconds): Promise<Outcome> => {
    const { id, test } = await signUp(gateway)
    for (let left = 0; left < 8; left += 1) await leaveBatch(gateway, test)
    const refused = await refuse(gateway, test, seconds)
    const lines = (await outputUntilNow(gateway)).split('\n')
    const errors = lines.filter((line) => line.includes('"level":"error"')).length
    const written = lines.filter((line) => line.includes(id) && line.includes('NOT_FOUND')).length
    return {
      isPassed: errors === 0 && written <= LINES_A_SECOND_MAX * (seconds + 2),
      figures: { 'refused calls': refused, 'lines about them': written, 'error lines': errors },
    }
  },
}

/**
 * Sends a batch of a single call, which takes three seconds, and leaves after a tenth of a second.
 */
async function leaveBatch(gateway: Gateway, key: string): Promise<void> {
  const calls = [{ api: 'dictionary', endpoint: '/define', parameters: { word: 'slow' } }]
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'x-gateway-scenario': 'slow-3000' }
  const signal = AbortSignal.timeout(100)
  await fetch(`${gateway.url}/v1/batch`, { method: 'POST', headers, signal, body: JSON.stringify({ calls }) }).then(
    (answer) => answer.text(),
    () => undefined,
  )
}

/**
 * Sends calls that the gateway refuses.
 * @returns their number
 */
async function refuse(gateway: Gateway, key: string, seconds: number): Promise<number> {
  const request = `GET /v1/call/nosuch/x HTTP/1.1\r\nHost: attack\r\nX-Api-Key: ${key}\r\n\r\n`
  let refused = 0
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      const count = data.toString('latin1').split('HTTP/1.1 ').length - 1
      refused += count
      if (count > 0) socket.write(request.repeat(count))
    })
    socket.write(request.repeat(PIPELINED))
    return socket
  })
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) await send(gateway, '/healthz')
  for (const socket of sockets) socket.destroy()
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')))
  return refused
}
