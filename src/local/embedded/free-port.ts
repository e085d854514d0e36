import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const HOST = '127.0.0.1'

/**
 * First port to try. It is below the ports that operating systems use for outgoing connections
 * (from 32768 on Linux, from 49152 on macOS and Windows), because any connection may take one of
 * those at any moment.
 */
const FIRST_PORT = 20_000
const END_OF_PORTS = 32_768
const TRIES = 50

/**
 * A free port of 127.0.0.1. It is the preferred port if that is free, so that addresses stay the
 * same. Another process may still take the port before the caller does.
 * @throws Error if no port is free
 */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred
  for (let time = 0; time < TRIES; time += 1) {
    const port = randomInt(FIRST_PORT, END_OF_PORTS)
    if (await isFree(port)) return port
  }
  throw new Error(`No free port on ${HOST}: ${TRIES} between ${FIRST_PORT} and ${END_OF_PORTS - 1} were tried.`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
