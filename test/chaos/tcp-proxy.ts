import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy on loopback that can misbehave as a network does. */
export interface TcpProxy {
  port: number
  /** Bytes of both directions are late by this much, milliseconds; 0 ends it. */
  delay: (ms: number) => void
  /**
   * Nothing passes and nothing is closed until `heal()`. Bytes that were sent meanwhile arrive
   * then.
   */
  blackHole: () => void
  /**
   * Bytes that the target sends are lost until `heal()`, such as acknowledgements of what it did.
   */
  loseReplies: () => void
  /** The proxy refuses new connections and resets existing connections. */
  cut: () => void
  /** Resets all connections once. */
  reset: () => void
  heal: () => void
  close: () => Promise<void>
}

/** Listens on a free port and forwards to `target`. */
export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<[Socket, Socket]>()
  let delayMs = 0
  let isHeld = false
  let isMute = false
  let isCut = false
  const deliveries = new Set<() => void>()
  const replies = new WeakSet<Socket>()

  const pass = (from: Socket, to: Socket): void => {
    // In the order in which they came, as in TCP, even if their delays differ.
    const queue: { dueAt: number; write: () => void }[] = []
    const deliver = (): void => {
      for (let next = queue[0]; next && !isHeld; next = queue[0]) {
        const leftMs = next.dueAt - performance.now()
        if (leftMs > 0) return void setTimeout(deliver, leftMs)
        queue.shift()
        next.write()
      }
    }
    const add = (write: () => void): void => {
      queue.push({ dueAt: performance.now() + delayMs, write })
      if (queue.length === 1) deliver()
    }
    deliveries.add(deliver)
    from.on('data', (bytes) => {
      if (isMute && replies.has(from)) return
      add(() => void (to.destroyed || to.write(bytes)))
    })
    from.on('end', () => add(() => void to.end()))
    from.on('error', () => to.destroy())
    from.on('close', () => {
      deliveries.delete(deliver)
      to.destroy()
    })
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (isCut) return void resetSocket(client)
    const upstream = connect({ ...target, allowHalfOpen: true })
    const pair: [Socket, Socket] = [client, upstream]
    pairs.add(pair)
    replies.add(upstream)
    for (const socket of pair) socket.setNoDelay(true)
    upstream.on('close', () => pairs.delete(pair))
    pass(client, upstream)
    pass(upstream, client)
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const reset = (): void => {
    for (const [client, upstream] of pairs) {
      resetSocket(client)
      upstream.destroy()
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    delay: (ms) => {
      delayMs = ms
    },
    blackHole: () => {
      isHeld = true
    },
    loseReplies: () => {
      isMute = true
    },
    cut: () => {
      isCut = true
      reset()
    },
    reset,
    heal: () => {
      delayMs = 0
      isCut = false
      isHeld = false
      isMute = false
      for (const deliver of deliveries) deliver()
    },
    close: async () => {
      reset()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Resets a connection. If its end was sent already, the proxy closes it, because a process of Node
 * cannot end after it has reset such a connection.
 */
function resetSocket(socket: Socket): void {
  if (socket.writableEnded || socket.destroyed) socket.destroy()
  else socket.resetAndDestroy()
}
