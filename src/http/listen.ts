import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type Config, ConfigError } from '../config.ts'
import type { Log } from '../log.ts'
import { createRequestId } from './refuse-connection.ts'

/** How long a node that ends keeps serving, so that load balancers see `readyz` say 503 first. Milliseconds. */
const DRAIN_MS = 1_500

/** Starts listening, and the plain listener that only redirects where one is set. @returns how to stop */
export async function listen(app: FastifyInstance, http: Config['http'], log: Log): Promise<() => Promise<void>> {
  await orNaming('PORT', http.port, app.listen({ host: http.host, port: http.port }))
  const redirecting =
    http.redirectPort === undefined
      ? undefined
      : await orNaming('HTTP_REDIRECT_PORT', http.redirectPort, listenAndRedirect(http, http.redirectPort))
  const { port } = app.server.address() as AddressInfo
  log.info({ host: http.host, port, baseUrl: http.baseUrl }, 'listening')
  // A supervisor that started this process with a channel is told the port, which may have been left to the system.
  process.send?.({ listening: port })
  return async () => {
    await delay(DRAIN_MS)
    redirecting?.close()
    await app.close()
  }
}

function listenAndRedirect({ host, baseUrl }: Config['http'], port: number): Promise<Server> {
  const server = createServer((request, response) => {
    const path = request.url?.startsWith('/') ? request.url : '/'
    const location = baseUrl + path
    const headers = { location, connection: 'close', 'content-length': 0, 'x-request-id': createRequestId() }
    response.writeHead(308, headers).end()
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
}

/** The certificate and its key. @throws ConfigError naming the variable whose file cannot be read */
export function readTlsFiles({ certFile, keyFile }: { certFile: string; keyFile: string }): {
  cert: Buffer
  key: Buffer
} {
  const read = (variable: string, file: string): Buffer => {
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new ConfigError(`${variable} names a file that cannot be read: ${file}`, { cause })
    }
  }
  return { cert: read('TLS_CERT_FILE', certFile), key: read('TLS_KEY_FILE', keyFile) }
}

/** Waits for a listener; where its port cannot be had, the variable is named instead of a stack. */
async function orNaming<T>(variable: string, port: number, listening: Promise<T>): Promise<T> {
  try {
    return await listening
  } catch (cause) {
    const code = cause instanceof Error ? Reflect.get(cause, 'code') : undefined
    const why = { EADDRINUSE: 'in use', EACCES: 'not allowed to this user' }[String(code)]
    throw why === undefined ? cause : new ConfigError(`${variable} cannot be used: port ${port} is ${why}`, { cause })
  }
}

/** Finds out whether a port can be had, without keeping it. @throws ConfigError naming the variable when it cannot */
export async function checkPort(variable: string, host: string, port: number): Promise<void> {
  const server = createTcpServer()
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, resolve)
  })
  await orNaming(variable, port, listening)
  await new Promise((resolve) => server.close(resolve))
}
