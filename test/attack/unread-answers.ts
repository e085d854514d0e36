import { setTimeout as delay } from 'node:timers/promises'
import { send, signUp } from '../support/client.ts'
import type { Outcome, Scenario } from './scenario.ts'
import { CLIENT_LIMITS, HEAP_MIB_MAX, isHeld, MEMORY_MB_MAX, openMany, P99_MS_MAX, watch } from './watch.ts'

/** Requests that a connection may have unanswered. */
const PIPELINED = 8

const PAGES = ['/openapi.json', '/', '/?q=weather', '/v1/catalog?q=a', '/docs/errors', '/postman.json', '/docs/nothing']

/** Approximate size of a kept result, bytes. */
const RESULT_BYTES = 1_900_000
const RESULTS = 5

const within = `leave an API node alive, below ${MEMORY_MB_MAX} MB, and quick for others (p99 ${P99_MS_MAX} ms)`

const limits = { environment: CLIENT_LIMITS, execArgv: [`--max-old-space-size=${HEAP_MIB_MAX}`] }

const get = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: attack\r\nAccept: text/html\r\n${headers}\r\n`.repeat(PIPELINED)

/** A stranger who fetches pages and reads none of them. */
export const unreadPages: Scenario = {
  name: 'unread-pages',
  claim: `480 connections with ${PIPELINED} unread requests for the reference each, then 1,000 of five addresses for other pages, ${within}`,
  ...limits,
  run: async (gateway, seconds): Promise<Outcome> => {
    const watched = await watch(gateway, seconds, async () => {
      const first = openMany(gateway.url, 480, { from: '127.0.2.1', bytes: get('/docs/reference') })
      await delay(seconds * 400)
      const others = Array.from({ length: 5 * PAGES.length }, (_, index) => {
        const path = PAGES[index % PAGES.length] ?? '/'
        return openMany(gateway.url, Math.round(200 / PAGES.length), {
          from: `127.0.2.${2 + (index % 5)}`,
          bytes: get(path),
        })
      })
      return (await Promise.all([first, ...others])).flat()
    })
    return { isPassed: isHeld(watched), figures: watched.figures }
  },
}

/** An account on the Free plan that fetches the results of its calls and reads none of them. */
export const unreadResults: Scenario = {
  name: 'unread-results',
  claim: `${RESULTS} kept results of ${RESULT_BYTES / 1e6} MB, each fetched on 40 connections ${PIPELINED} times and not read, ${within}`,
  ...limits,
  slugs: ['prediction-markets'],
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    const { live } = await signUp(gateway)
    upstream?.play('prediction-markets', () => [{ id: '1', question: 'q', noise: 'n'.repeat(RESULT_BYTES) }])
    const locations: string[] = []
    for (let index = 1; index <= RESULTS; index += 1) {
      const headers = { prefer: 'respond-async', 'x-gateway-response': 'raw' }
      const { status, headers: answered } = await send(gateway, `/v1/call/prediction-markets/markets?limit=${index}`, {
        key: live,
        headers,
      })
      const location = answered.get('location')
      if (status !== 202 || location === null) throw new Error(`an asynchronous call was answered ${status}`)
      while ((await fetchBytes(gateway.url + location, live)) < RESULT_BYTES) await delay(50)
      locations.push(location)
    }
    const watched = await watch(gateway, seconds, async () => {
      const attack = locations.map((location, index) =>
        openMany(gateway.url, 40, { from: `127.0.3.${1 + index}`, bytes: get(location, `X-Api-Key: ${live}\r\n`) }),
      )
      return (await Promise.all(attack)).flat()
    })
    return { isPassed: isHeld(watched), figures: watched.figures }
  },
}

/** Size of a kept result, bytes; 0 if there is no result yet. */
async function fetchBytes(url: string, key: string): Promise<number> {
  const response = await fetch(url, { headers: { 'x-api-key': key } })
  const bytes = (await response.arrayBuffer()).byteLength
  if (response.status !== 200 && response.status !== 202) throw new Error(`a result was answered ${response.status}`)
  return response.status === 200 ? bytes : 0
}
