import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'

/** Serves `/metrics` and `/healthz` of this process on METRICS_PORT; nothing when it is 0. @returns how to stop */
export async function serveMetrics(http: Config['http'], registry: Registry, log: Log): Promise<() => void> {
  if (http.metricsPort === 0) return () => undefined
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0]
    if (path === '/healthz') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
    } else if (path === '/metrics') {
      registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
        (error) => {
          log.warn({ err: error }, 'metrics not collected')
          response.writeHead(500).end()
        },
      )
    } else {
      response.writeHead(404).end()
    }
  })
  await listening(server, http.metricsPort, http.metricsHost)
  log.info({ host: http.metricsHost, port: http.metricsPort }, 'metrics')
  return () => void server.close()
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}
