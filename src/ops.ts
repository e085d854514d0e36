import type { AddressInfo } from 'node:net'
import { orNaming } from './config.ts'
import { createConsole } from './console/console-app.ts'
import { operatorAuditRoutes } from './console/operator-audit.ts'
import { operatorCallRoutes } from './console/operator-calls.ts'
import { operatorNoticeRoutes } from './console/operator-notice.ts'
import { operatorRoutes } from './console/operator-upstreams.ts'
import { operatorUserRoutes } from './console/operator-users.ts'
import { closeContext, openContext } from './context.ts'
import { createLog } from './log.ts'
import { loadSettings, runProcess } from './process.ts'

/** The operator console and the operator API. */
await runProcess('ops', async () => {
  const config = await loadSettings('ops')
  const log = createLog(config.log, 'ops')
  const context = await openContext(config, log, 'ops')
  const app = await createConsole(context, [
    operatorRoutes,
    operatorAuditRoutes,
    operatorCallRoutes,
    operatorUserRoutes,
    operatorNoticeRoutes,
  ])
  const { opsHost: host, opsPort } = config.http
  const address = { host, hostVariable: 'OPS_HOST', port: opsPort, portVariable: 'OPS_PORT' }
  await orNaming(address, app.listen({ host, port: opsPort }))
  const { port } = app.server.address() as AddressInfo
  log.info({ host, port }, 'console listening')
  process.send?.({ listening: port })
  return {
    log,
    finish: async () => {
      await app.close()
    },
    close: () => closeContext(context),
  }
})
