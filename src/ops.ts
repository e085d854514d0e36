import type { AddressInfo } from 'node:net'
import { loadProcessConfig } from './config.ts'
import { createConsole } from './console/console-app.ts'
import { closeContext, openContext } from './context.ts'
import { createLog } from './log.ts'
import { runProcess } from './process.ts'
import { withClusterNodes } from './redis/server-info.ts'
import { operatorRoutes } from './routes/operator.ts'

/** The operator console and the operator API. */
await runProcess('ops', async () => {
  const config = await withClusterNodes(loadProcessConfig('ops'))
  const log = createLog(config.log, 'ops')
  const context = await openContext(config, log, 'ops')
  const app = await createConsole(context, [operatorRoutes])
  await app.listen({ host: config.http.opsHost, port: config.http.opsPort })
  const { port } = app.server.address() as AddressInfo
  log.info({ host: config.http.opsHost, port }, 'console listening')
  process.send?.({ listening: port })
  return {
    log,
    finish: async () => {
      await app.close()
    },
    close: () => closeContext(context),
  }
})
