import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, Worker } from 'node:worker_threads'
import { bodyWith, type Flow, nonceOf } from './nonce.ts'

/** How an upstream behaves from now on. */
export interface Behaviour {
  flow: Flow
  kind: 'ok' | 'hang' | 'reset' | 'error' | 'half' | 'limited' | 'limited-5s'
  /** How long an answer takes, milliseconds. */
  delayMs?: number
}

/** One request as the upstream saw it. */
export interface ArrivalRecord {
  /** Milliseconds since the epoch. */
  at: number
  flow: Flow
  /** Undefined for a health probe. */
  nonce: number | undefined
  /** Requests of the flow that are running, this request included. */
  concurrent: number
}

/**
 * A recording upstream with an event loop of its own, so that arrivals are written down when they
 * happen.
 */
export interface ChaosUpstream {
  port: number
  behave: (behaviour: Behaviour) => void
  arrivals: () => Promise<ArrivalRecord[]>
  close: () => Promise<void>
}

export async function startChaosUpstream(): Promise<ChaosUpstream> {
  const thread = new Worker(new URL(import.meta.url), { workerData: 'chaos-upstream' })
  const [port] = await once(thread, 'message')
  return {
    port,
    behave: (behaviour) => thread.postMessage(behaviour),
    arrivals: async () => {
      thread.postMessage('arrivals')
      const [arrivals] = await once(thread, 'message')
      return arrivals as ArrivalRecord[]
    },
    close: async () => void (await thread.terminate()),
  }
}

/**
 * Longest time that the upstream holds a hanging request, milliseconds. It is longer than every
 * attempt.
 */
const HANG_MS = 60_000

async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  const arrivals: ArrivalRecord[] = []
  const behaviours = new Map<Flow, Behaviour>()
  const underWay = new Map<Flow, number>()
  let count = 0
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const flow: Flow = url.pathname.startsWith('/air-quality') ? 'air-quality' : 'weather'
    const concurrent = (underWay.get(flow) ?? 0) + 1
    underWay.set(flow, concurrent)
    response.once('close', () => underWay.set(flow, (underWay.get(flow) ?? 1) - 1))
    const nonce = nonceOf(url.searchParams)
    arrivals.push({ at: performance.timeOrigin + performance.now(), flow, nonce, concurrent })
    count += 1
    const behaviour = behaviours.get(flow) ?? { flow, kind: 'ok' }
    setTimeout(() => answer(response, behaviour, { nonce: nonce ?? 0, isOdd: count % 2 === 1 }), behaviour.delayMs ?? 2)
  })
  port.on('message', (message: Behaviour | 'arrivals') => {
    if (message === 'arrivals') port.postMessage(arrivals)
    else behaviours.set(message.flow, message)
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  port.postMessage((server.address() as AddressInfo).port)
}

function answer(response: ServerResponse, { flow, kind }: Behaviour, call: { nonce: number; isOdd: boolean }): void {
  const send = (status: number, body: unknown, headers: Record<string, string> = {}): void =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  if (kind === 'hang') return void setTimeout(() => response.destroy(), HANG_MS).unref()
  if (kind === 'reset') return void response.socket?.resetAndDestroy()
  if (kind === 'error' || (kind === 'half' && call.isOdd)) send(500, { error: 'internal' })
  else if (kind === 'limited') send(429, { error: 'too many' })
  else if (kind === 'limited-5s') send(429, { error: 'too many' }, { 'retry-after': '5' })
  else send(200, bodyWith(flow, call.nonce))
}

if (parentPort) await serve(parentPort)
