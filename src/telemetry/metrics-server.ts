import { once } from 'node:events'
import type { Registry } from 'prom-client'
import { type Config, orNaming } from '../config.ts'
import type { Log } from '../log.ts'
import { createServer } from '../node-http.ts'
import type { Readiness } from './readiness.ts'

/** Longest time of a request, milliseconds. */
const REQUEST_MS_MAX = 10_000

export interface MetricsServerDeps {
  registry: Registry
  readiness: Readiness
  log: Log
}

/**
 * Serves `/metrics`, `/healthz` and `/readyz` of this process on METRICS_PORT. If METRICS_PORT is
 * 0, it serves nothing.
 *
 * @returns stops the server
 */
export async function serveMetrics(http: Config['http'], deps: MetricsServerDeps): Promise<() => void> {
  if (http.metricsPort === 0) return () => undefined
  const { log } = deps
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0]
    answer(path, deps).then(
      ({ status, type, text }) => response.writeHead(status, { 'content-type': type }).end(text),
      (error) => {
        log.warn({ err: error, path }, 'failed to answer on the port of the metrics')
        response.writeHead(500).end()
      },
    )
  })
  // Requests here are short and have no body.
  server.requestTimeout = REQUEST_MS_MAX
  server.headersTimeout = REQUEST_MS_MAX
  const { metricsHost: host, metricsPort: port } = http
  const address = { host, hostVariable: 'METRICS_HOST', port, portVariable: 'METRICS_PORT' }
  await orNaming(address, once(server.listen(port, host), 'listening'))
  log.info({ host, port }, 'metrics')
  return () => void server.close()
}

const JSON_TYPE = 'application/json'

async function answer(
  path: string | undefined,
  { registry, readiness }: MetricsServerDeps,
): Promise<{ status: number; type: string; text: string }> {
  if (path === '/healthz') return { status: 200, type: JSON_TYPE, text: '{"status":"ok"}' }
  if (path === '/metrics') return { status: 200, type: registry.contentType, text: await registry.metrics() }
  if (path !== '/readyz') return { status: 404, type: JSON_TYPE, text: '{}' }
  const report = await readiness.check()
  return { status: report.status === 'ready' ? 200 : 503, type: JSON_TYPE, text: JSON.stringify(report) }
}
