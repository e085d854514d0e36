import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { ExpiryWatch } from '../../src/accounts/notices.ts'
import { createApp } from '../../src/app.ts'
import { loadProcessConfig } from '../../src/config.ts'
import { createConsole } from '../../src/console/console-app.ts'
import { operatorAuditRoutes } from '../../src/console/operator-audit.ts'
import { operatorCallRoutes } from '../../src/console/operator-calls.ts'
import { operatorNoticeRoutes } from '../../src/console/operator-notice.ts'
import { operatorRoutes } from '../../src/console/operator-upstreams.ts'
import { operatorUserRoutes } from '../../src/console/operator-users.ts'
import { closeContext, openContext } from '../../src/context.ts'
import { OldRowsCleaner } from '../../src/db/old-rows.ts'
import { UsageFlusher } from '../../src/limits/usage-flusher.ts'
import { createLog } from '../../src/log.ts'
import { openWorker } from '../../workers/worker.ts'

/** A worker inside the test's own process. */
export interface LocalWorker {
  stop: () => Promise<void>
}

/**
 * An API node or an operator console inside the test's own process, with everything that the entry
 * file opens.
 */
export interface LocalNode extends LocalWorker {
  app: FastifyInstance
  /**
   * The address at which it also listens: for bytes that are not HTTP, for browsers, and for
   * clients with their own transport.
   */
  url: string
}

/** Opens an API node as `src/server.ts` does. A process of its own costs ten times as much. */
export async function startLocalNode(environment: Record<string, string>): Promise<LocalNode> {
  const context = await openLocalContext('web', environment)
  const usage = new UsageFlusher(context)
  usage.open()
  const oldRows = new OldRowsCleaner(context)
  oldRows.open()
  const expiry = new ExpiryWatch(context)
  expiry.open()
  return await listen(await createApp(context), context.config.http.port, async () => {
    await Promise.all([usage.close(), oldRows.close(), expiry.close()])
    await closeContext(context)
  })
}

/** Opens an operator console as `src/ops.ts` does. */
export async function startLocalConsole(environment: Record<string, string>): Promise<LocalNode> {
  const context = await openLocalContext('ops', environment)
  return await listen(
    await createConsole(context, [
      operatorRoutes,
      operatorAuditRoutes,
      operatorCallRoutes,
      operatorUserRoutes,
      operatorNoticeRoutes,
    ]),
    0,
    () => closeContext(context),
  )
}

/** Opens a worker as `workers/worker.ts` does. */
export async function startLocalWorker(environment: Record<string, string>): Promise<LocalWorker> {
  const config = loadProcessConfig('worker', environment)
  const { finish, close } = await openWorker(config, createLog({ ...config.log, level: 'silent' }, 'worker'))
  return {
    stop: async () => {
      await finish?.()
      await close()
    },
  }
}

async function openLocalContext(kind: 'web' | 'ops', environment: Record<string, string>) {
  const config = loadProcessConfig(kind, environment)
  // Standard output belongs to the test runner.
  return await openContext(config, createLog({ ...config.log, level: 'silent' }, kind), kind)
}

async function listen(app: FastifyInstance, port: number, close: () => Promise<void>): Promise<LocalNode> {
  await app.listen({ host: '127.0.0.1', port })
  return {
    app,
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    stop: async () => {
      app.server.closeAllConnections()
      await app.close()
      await close()
    },
  }
}
