import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import type { AppControllerRoute } from '@bull-board/api/typings/app'
import { FastifyAdapter } from '@bull-board/fastify'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import { guardWritesWithCookie } from './operator-guard.ts'

const PREFIX = '/queues'

/** Longest text of a job that is shown, characters. */
const TEXT_MAX = 200

/** The board's own files, its inline styles, and nothing of another host. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"

/** The board links fonts of another host in its page; its fallback fonts serve. */
const FOREIGN_LINK = /<link\b[^>]*href="https?:[^>]*>/g

/**
 * Not offered: jobs that nobody admitted, data written back as they are shown (redacted), and limits that would compete
 * with the upstream's cap.
 */
const LEFT_OUT = new Set([
  '/api/queues/:queueName/add',
  '/api/queues/:queueName/:jobId/update-data',
  '/api/queues/:queueName/concurrency',
  '/api/queues/:queueName/rate-limit',
])

class LimitedAdapter extends FastifyAdapter {
  override setApiRoutes(routes: AppControllerRoute[]): FastifyAdapter {
    return super.setApiRoutes(
      routes.filter(({ method, route }) => method === 'get' || ![route].flat().some((path) => LEFT_OUT.has(path))),
    )
  }
}

/** bull-board over the queues of all upstreams. Whoever registers it guards the scope. */
export async function queueBoard(scope: FastifyInstance, { config, catalog, db, log, queues }: Context): Promise<void> {
  guardWritesWithCookie(scope, config)
  scope.addHook('onSend', async (_request, reply, payload) => {
    reply.header('content-security-policy', CONTENT_SECURITY_POLICY)
    return typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
      ? payload.replace(FOREIGN_LINK, '')
      : payload
  })
  scope.addHook('onResponse', async (request, reply) => {
    if (request.method === 'GET' || reply.statusCode >= 400) return
    const [subject = '', ...rest] = request.url.slice('/queues/api/queues/'.length).split('?')[0]?.split('/') ?? []
    const record = { actor: `operator (${request.ip})`, action: `queues.${rest.join('.')}`, subject }
    // Done already: a record that cannot be written goes to the log instead.
    await insertAuditRecord(db, record).catch((error) =>
      log.error({ err: error, audit: record }, 'not in the audit log'),
    )
  })
  const adapter = new LimitedAdapter()
  adapter.setBasePath(PREFIX)
  createBullBoard({
    queues: [...catalog.keys()].map((slug) => {
      const queue = new BullMQAdapter(queues.of(slug))
      queue.setFormatter('data', redactJob)
      queue.setFormatter('returnValue', () => null)
      return queue
    }),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'Agent API Gateway', miscLinks: [{ text: 'Overview', url: '/' }] } },
  })
  await scope.register(adapter.registerPlugin(), { prefix: PREFIX })
}

/** A job without what a caller sent beyond declared parameters, which may be anything, and with long texts cut. */
export function redactJob(data: unknown): unknown {
  const { extra, parameters, ...rest } = Object(data)
  if (parameters === undefined) return rest
  return {
    ...rest,
    parameters: Object.fromEntries(Object.entries(Object(parameters)).map(([name, value]) => [name, cut(value)])),
    extra: Array.isArray(extra) ? extra.map((pair) => [cut(Object(pair)[0]), '[redacted]']) : [],
  }
}

function cut(value: unknown): unknown {
  return typeof value === 'string' && value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value
}
