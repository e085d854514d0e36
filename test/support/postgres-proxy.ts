import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of Postgres, for faults of the network and of poolers. */
export interface PostgresProxy {
  url: string
  /**
   * Ends every connection without a message of the protocol, as if the server's process was killed.
   */
  resetAll: () => void
  /**
   * While it is true, the proxy accepts connections and passes nothing on, as if the server's
   * process was stopped.
   */
  isSilent: boolean
  /**
   * If a statement contains this text, its connection breaks after Postgres has run the statement
   * and before the answer.
   */
  breaksAfter: string | undefined
  /**
   * If a statement contains this text, Postgres runs it, and nothing more arrives over its
   * connection.
   */
  holdsAfter: string | undefined
  /**
   * If a statement contains this text, Postgres ends its connection right after the answer, as in a
   * restart.
   */
  endsAfter: string | undefined
  /**
   * Names of startup parameters, or of settings in `options`, that the proxy refuses, as PgBouncer
   * refuses parameters that it does not track.
   */
  refusedParameters: string[]
  /** How many connections the proxy refused because of a parameter. */
  refusals: number
  close: () => Promise<void>
}

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    let isBreaking = false
    let isEnding = false
    let isHeld = false
    upstream.on('data', (data) => {
      if (isBreaking) client.destroy()
      else if (isEnding) client.end(Buffer.concat([data, errorMessage('57P01', 'terminating connection')]))
      else if (!proxy.isSilent && !isHeld) client.write(data)
    })
    client.once('data', (startup) => {
      const refused = proxy.refusedParameters.find((name) => startup.includes(name))
      if (refused !== undefined) {
        proxy.refusals += 1
        client.end(errorMessage('08P01', `unsupported startup parameter: ${refused}`))
        return
      }
      if (!proxy.isSilent) upstream.write(startup)
      client.on('data', (data) => {
        if (proxy.breaksAfter !== undefined && data.includes(proxy.breaksAfter)) {
          proxy.breaksAfter = undefined
          isBreaking = true
        }
        if (proxy.holdsAfter !== undefined && data.includes(proxy.holdsAfter)) {
          proxy.holdsAfter = undefined
          isHeld = true
        }
        if (proxy.endsAfter !== undefined && data.includes(proxy.endsAfter)) {
          proxy.endsAfter = undefined
          isEnding = true
        }
        if (!proxy.isSilent) upstream.write(data)
      })
    })
  })
  await once(server.listen(0, '127.0.0.1').unref(), 'listening')
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const proxy: PostgresProxy = {
    url: url.href,
    resetAll: () => {
      for (const socket of sockets) socket.destroy()
    },
    isSilent: false,
    breaksAfter: undefined,
    holdsAfter: undefined,
    endsAfter: undefined,
    refusedParameters: [],
    refusals: 0,
    close: async () => {
      server.close()
      proxy.resetAll()
      await once(server, 'close')
    },
  }
  return proxy
}

/** ErrorResponse of the Postgres protocol. */
function errorMessage(state: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${state}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
