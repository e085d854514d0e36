import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import type { AppControllerRoute } from '@bull-board/api/typings/app'
import { FastifyAdapter } from '@bull-board/fastify'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'

const PREFIX = '/queues'

/** The board's own links are in a menu; this one is seen. */
const WAY_BACK =
  '<a href="/" style="position:fixed;right:1rem;bottom:1rem;z-index:9;padding:.5rem .9rem;border-radius:8px;background:#1d5fd1;color:#fff;font:600 14px system-ui;text-decoration:none">Overview: failures, health, caps</a>'

/** What the board cannot show: operators who look for failed calls here would find none. */
const SHOWN = 'Calls that wait or run now. Failed calls are not jobs: see the Overview.'

/** Longest text of a job that is shown, characters. */
const TEXT_MAX = 200

/** The board's own files, its inline styles, and nothing of another host. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"

/** The board links fonts of another host in its page; its fallback fonts serve. */
const FOREIGN_LINK = /<link\b[^>]*href="https?:[^>]*>/g

/**
 * Serves what reads alone. What changes a queue is done on the overview page, where it is asked for, has a name in the
 * audit log and says what callers get; emptying or obliterating a queue would take the probes' schedule with it.
 */
class ReadingAdapter extends FastifyAdapter {
  override setApiRoutes(routes: AppControllerRoute[]): FastifyAdapter {
    return super.setApiRoutes(routes.filter(({ method }) => method === 'get'))
  }
}

/** bull-board over the queues of all upstreams. Whoever registers it guards the scope. */
export async function queueBoard(
  scope: FastifyInstance,
  { catalog, queues }: Pick<Context, 'catalog' | 'queues'>,
): Promise<void> {
  scope.addHook('onSend', async (_request, reply, payload) => {
    reply.header('content-security-policy', CONTENT_SECURITY_POLICY)
    return typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
      ? payload.replace(FOREIGN_LINK, '').replace('</body>', `${WAY_BACK}</body>`)
      : payload
  })
  const adapter = new ReadingAdapter()
  adapter.setBasePath(PREFIX)
  createBullBoard({
    queues: [...catalog.keys()].map((slug) => {
      const queue = new BullMQAdapter(queues.of(slug), { readOnlyMode: true, description: SHOWN })
      queue.setFormatter('data', redactJob)
      queue.setFormatter('returnValue', () => null)
      return queue
    }),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Agent API Gateway',
        miscLinks: [
          { text: 'Overview', url: '/' },
          { text: 'Metrics', url: '/metrics' },
        ],
      },
    },
  })
  await scope.register(adapter.registerPlugin(), { prefix: PREFIX })
}

/** The calls of a job without what callers sent beyond declared parameters, which may be anything, and with long texts cut. */
function redactJob(data: unknown): unknown {
  const { calls } = Object(data)
  return Array.isArray(calls) ? { ...Object(data), calls: calls.map(redactCall) } : redactCall(data)
}

function redactCall(data: unknown): unknown {
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
