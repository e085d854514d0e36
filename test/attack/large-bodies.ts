import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { signUp } from '../support/client.ts'
import type { Outcome, Scenario } from './scenario.ts'
import { CLIENT_LIMITS, HEAP_MIB_MAX, isHeld, MEMORY_MB_MAX, openMany, P99_MS_MAX, watch } from './watch.ts'

const MIB = 1_024 * 1_024

/** As many short strings as fit into 1 MiB. */
const BODY = `[${'"",'.repeat(349_500)}""]`

const within = `leave an API node alive, below ${MEMORY_MB_MAX} MB, and quick for others (p99 ${P99_MS_MAX} ms)`

const limits = { environment: CLIENT_LIMITS, execArgv: [`--max-old-space-size=${HEAP_MIB_MAX}`] }

const post = (path: string, length: number, headers = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: attack\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${headers}\r\n`

/**
 * Bodies that are expensive to parse, without an account and with an account, as fast as the node
 * accepts them.
 */
export const bodyFlood: Scenario = {
  name: 'body-flood',
  claim: `bodies of 1 MiB on 8 connections without an account and 32 with a key ${within}`,
  ...limits,
  run: async (gateway, seconds): Promise<Outcome> => {
    const { live } = await signUp(gateway)
    const portal = 'X-Portal-Request: 1\r\n'
    const key = `X-Api-Key: ${live}\r\n`
    const end = performance.now() + seconds * 1_000
    let sent = 0
    const flood = async (head: string, body: string): Promise<void> => {
      const bytes = Buffer.from(head + body)
      while (performance.now() < end) {
        await sendBytes(gateway.url, bytes, end)
        sent += 1
      }
    }
    const watched = await watch(gateway, seconds, async () => {
      const small = BODY.slice(0, 60_000).replace(/,?"?$/, ']')
      await Promise.all([
        ...times(4, () => flood(post('/connect/x/decision', BODY.length, portal), BODY)),
        ...times(4, () => flood(post('/portal/logout', BODY.length, portal), BODY)),
        ...times(8, () => flood(post('/v1/call/weather/current', BODY.length, key), BODY)),
        ...times(16, () => flood(post('/v1/call/weather/current', small.length, key), small)),
        ...times(8, () => flood(post('/v1/batch', BODY.length, key), BODY)),
      ])
      return []
    })
    return { isPassed: isHeld(watched), figures: { 'bodies sent': sent, ...watched.figures } }
  },
}

/** Uploads that stop one byte early. */
export const heldBodies: Scenario = {
  name: 'held-bodies',
  claim: `uploads from two addresses that stop one byte early, 600 without a credential and 600 with a key, ${within}`,
  ...limits,
  run: async (gateway, seconds): Promise<Outcome> => {
    const { live } = await signUp(gateway)
    const key = `X-Api-Key: ${live}\r\n`
    const upload = (path: string, length: number, headers = '') => post(path, length, headers) + 'x'.repeat(length - 1)
    const watched = await watch(gateway, seconds, async () => {
      const attack = ['127.0.4.1', '127.0.4.2'].flatMap((from) => [
        openMany(gateway.url, 200, { from, bytes: upload('/v1/call/x/y', MIB) }),
        openMany(gateway.url, 100, { from, bytes: upload('/v1/auth/login', 4_000) }),
      ])
      const withKey = ['127.0.4.3', '127.0.4.4'].flatMap((from) => [
        openMany(gateway.url, 150, { from, bytes: upload('/v1/call/x/y', 65_000, key) }),
        openMany(gateway.url, 150, { from, bytes: upload('/v1/batch', 500_000, key) }),
      ])
      return (await Promise.all([...attack, ...withKey])).flat()
    })
    return { isPassed: isHeld(watched), figures: watched.figures }
  },
}

/**
 * Clients that read or send a byte a second, on as many connections as their addresses may have.
 */
export const slowClients: Scenario = {
  name: 'slow-clients',
  claim: `1,960 connections of four addresses that never read, or read or send heads or bodies one byte a second, ${within}`,
  ...limits,
  run: async (gateway, seconds): Promise<Outcome> => {
    const page = 'GET /?q=a HTTP/1.1\r\nHost: attack\r\n\r\n'.repeat(8)
    const watched = await watch(gateway, seconds, async () => {
      const [never, reading, heads, bodies] = await Promise.all([
        openMany(gateway.url, 490, { from: '127.0.5.1', bytes: page }),
        openMany(gateway.url, 490, { from: '127.0.5.2', bytes: page }),
        openMany(gateway.url, 490, { from: '127.0.5.3', bytes: 'GET /' }),
        openMany(gateway.url, 490, { from: '127.0.5.4', bytes: post('/v1/auth/login', 4_000) }),
      ])
      const end = performance.now() + seconds * 1_000
      while (performance.now() < end) {
        for (const socket of reading ?? []) socket.read(1)
        for (const socket of [...(heads ?? []), ...(bodies ?? [])]) if (socket.writable) socket.write('x')
        await delay(1_000)
      }
      return [never, reading, heads, bodies].flat()
    })
    return { isPassed: isHeld(watched), figures: watched.figures }
  },
}

function times<T>(count: number, start: () => T): T[] {
  return Array.from({ length: count }, start)
}

/** Sends bytes on a connection of its own and waits until the node answers or closes it. */
async function sendBytes(url: string, bytes: Buffer, end: number): Promise<void> {
  const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(end - performance.now())))
  try {
    socket.write(bytes)
    await Promise.race([once(socket, 'data', { signal }), once(socket, 'close', { signal })])
  } catch {
    // The other side closed the connection, or the attack is over.
  } finally {
    socket.destroy()
  }
}
