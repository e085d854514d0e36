import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const HOST = '127.0.0.1'

/**
 * Below the range from which operating systems take the ports of outgoing connections (32768 and up
 * on Linux, 49152 on macOS and Windows): one of those may be taken at any moment, also by a
 * connection that nobody here opened.
 */
const FIRST_PORT = 20_000
const END_OF_PORTS = 32_768
const TRIES = 50

/**
 * A port of 127.0.0.1 that nobody listens on: the preferred one when it is still free, so that an
 * address stays the same. Another process may take it before the caller does.
 * @throws Error when none is found
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
