import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { percentile, residentMb } from './scenario.ts'

/** Memory of an API node's container (768 MiB), in MB. Node takes half of it for its heap. */
export const MEMORY_MB_MAX = 805
export const HEAP_MIB_MAX = 384

/**
 * Longest time that another account may wait for an answer to `/v1/me`, 99th percentile,
 * milliseconds.
 */
export const P99_MS_MAX = 250

/**
 * The limits that hold if an operator sets nothing. The tests' gateways otherwise have no limits of
 * connections.
 */
export const CLIENT_LIMITS = {
  CLIENT_CONNECTIONS_MAX: '500',
  CLIENT_ANONYMOUS_PER_SECOND: '200',
  ACCOUNT_REQUESTS_PER_SECOND: '100',
  UNKNOWN_KEYS_PER_MINUTE: '120',
}

export interface Watched {
  isAlive: boolean
  memoryMb: number
  p99Ms: number
  figures: Record<string, string | number>
}

/** Attacks for `seconds`, and watches an API node and another account's requests meanwhile. */
export async function watch(gateway: Gateway, seconds: number, attack: () => Promise<Socket[]>): Promise<Watched> {
  const [node] = gateway.web
  const { token } = await signUp(gateway)
  const isAlive = () => node?.exitCode === null && node.signalCode === null
  const before = await residentMb(node?.pid ?? 0)
  let [memoryMb, isOver] = [before, false]
  const other = new Worker(new URL('look.ts', import.meta.url), { workerData: { url: gateway.url, token } })
  const looked = once(other, 'message')
  const measure = async (): Promise<void> => {
    while (!isOver && isAlive()) {
      memoryMb = Math.max(memoryMb, await residentMb(node?.pid ?? 0).catch(() => 0))
      await delay(20)
    }
  }
  const measuring = measure()
  const [sockets] = await Promise.all([attack(), delay(seconds * 1_000)])
  isOver = true
  await measuring
  other.postMessage('over')
  const [{ latencies, failed }] = (await looked) as [{ latencies: number[]; failed: number }]
  for (const socket of sockets) socket.destroy()
  const isReady = isAlive() && (await fetch(`${gateway.url}/readyz`).catch(() => undefined))?.status === 200
  const p99Ms = percentile(latencies, 0.99)
  return {
    isAlive: isReady && latencies.length > 0 && failed === 0,
    memoryMb,
    p99Ms,
    figures: {
      connections: sockets.length,
      'node alive': isReady ? 'yes' : 'no',
      'requests of another account': latencies.length,
      failed,
      'p50 ms': Math.round(percentile(latencies, 0.5)),
      'p99 ms': Math.round(p99Ms),
      'memory before MB': Math.round(before),
      'memory at most MB': Math.round(memoryMb),
    },
  }
}

export function isHeld({ isAlive, memoryMb, p99Ms }: Watched): boolean {
  return isAlive && memoryMb < MEMORY_MB_MAX && p99Ms < P99_MS_MAX
}

/** Opens connections from an address of this machine. Each sends `bytes` and reads nothing. */
export async function openMany(url: string, count: number, { from, bytes }: { from: string; bytes: string | Buffer }) {
  return await Promise.all(
    Array.from({ length: count }, async (): Promise<Socket> => {
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: from })
      socket.on('error', () => undefined)
      socket.pause()
      await Promise.race([once(socket, 'connect'), once(socket, 'close')])
      if (!socket.destroyed) socket.write(bytes)
      return socket
    }),
  )
}
