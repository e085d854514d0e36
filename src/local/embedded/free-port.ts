import { createServer } from 'node:net'

const HOST = '127.0.0.1'

/** A port of 127.0.0.1 that nobody listens on: the preferred one when it is still free, so that an address stays the same. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await tryPort(preferred)) !== undefined) return preferred
  const port = await tryPort(0)
  if (port === undefined) throw new Error(`No free port on ${HOST}.`)
  return port
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host: HOST, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : undefined))
    })
  })
}
