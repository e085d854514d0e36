import type { FastifyInstance } from 'fastify'
import { type Config, loadConfig } from '../../src/config.ts'
import { createConsole } from '../../src/console/console-app.ts'
import { operatorAuditRoutes } from '../../src/console/operator-audit.ts'
import { operatorCallRoutes } from '../../src/console/operator-calls.ts'
import { operatorRoutes } from '../../src/console/operator-upstreams.ts'
import { operatorUserRoutes } from '../../src/console/operator-users.ts'
import { type Context, closeContext, openContext } from '../../src/context.ts'
import { createLog } from '../../src/log.ts'
import { testSecrets, until } from './gateway.ts'
import { type Services, startServices } from './services.ts'

/** A console in this process, on services of its own. Requests reach it through `app.inject`. */
export interface TestConsole {
  app: FastifyInstance
  context: Context
  services: Services
  config: Config
  token: string
  bearer: { authorization: string }
  /** A console of another process on the same services. */
  another: () => Promise<{ app: FastifyInstance; close: () => Promise<void> }>
  stop: () => Promise<void>
}

export async function openTestConsole(environment: Record<string, string> = {}): Promise<TestConsole> {
  const services = await startServices()
  const config = loadConfig({
    ...testSecrets(),
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    DATA_DIR: services.folder,
    PORT: '0',
    BASE_URL: 'http://localhost:3000',
    ...environment,
  })
  const open = async () => {
    const context = await openContext(config, createLog({ level: 'silent', pretty: false }, 'ops'), 'ops')
    const app = await createConsole(context, [
      operatorRoutes,
      operatorAuditRoutes,
      operatorCallRoutes,
      operatorUserRoutes,
    ])
    await until(() => context.redis.status === 'ready')
    const close = async () => {
      await app.close()
      await closeContext(context)
    }
    return { app, context, close }
  }
  const { app, context, close } = await open()
  const token = config.secrets.operatorToken
  return {
    app,
    context,
    services,
    config,
    token,
    bearer: { authorization: `Bearer ${token}` },
    another: open,
    stop: async () => {
      await close()
      await services.stop()
    },
  }
}
