import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, Worker, workerData } from 'node:worker_threads'

/** The upstream's answer to every request. */
export interface ClockPlay {
  body: unknown
  /** How long an answer takes, milliseconds. */
  delayMs?: number
}

/** One request: when it arrived, milliseconds since the epoch, and its path with query. */
export interface TimedArrival {
  at: number
  url: string
}

/**
 * A loopback upstream with an event loop of its own. It writes down when each request arrives. In
 * the event loop of a test that sends hundreds of calls it would read arrivals late, and they would
 * seem closer together than they were.
 */
export interface ArrivalClock {
  url: string
  arrivals: () => Promise<TimedArrival[]>
  close: () => Promise<void>
}

export async function startArrivalClock(play: ClockPlay): Promise<ArrivalClock> {
  const thread = new Worker(new URL(import.meta.url), { workerData: play })
  const [port] = await once(thread, 'message')
  thread.unref()
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals: async () => {
      thread.postMessage('arrivals')
      const [arrivals] = await once(thread, 'message')
      return arrivals as TimedArrival[]
    },
    close: async () => void (await thread.terminate()),
  }
}

/**
 * Most arrivals in any window of this length. A request that arrives exactly at the end of a window
 * belongs to the next window.
 */
export function mostInWindow(arrivals: TimedArrival[], windowMs: number): number {
  let most = 0
  for (let first = 0, last = 0; last < arrivals.length; last += 1) {
    while ((arrivals[last]?.at ?? 0) - (arrivals[first]?.at ?? 0) >= windowMs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}

async function serve({ body, delayMs = 0 }: ClockPlay): Promise<void> {
  const arrivals: TimedArrival[] = []
  const text = JSON.stringify(body)
  const server = createServer((request, response) => {
    arrivals.push({ at: performance.timeOrigin + performance.now(), url: request.url ?? '' })
    const answer = (): void => void response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    if (delayMs > 0) setTimeout(answer, delayMs)
    else answer()
  })
  parentPort?.on('message', () => parentPort?.postMessage(arrivals))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  parentPort?.postMessage((server.address() as AddressInfo).port)
}

if (parentPort) await serve(workerData)
