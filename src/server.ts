import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { closeContext, openContext } from './context.ts'
import { listen } from './http/listen.ts'
import { createLog } from './log.ts'
import { runProcess } from './process.ts'
import { UsageMover } from './usage/usage-mover.ts'

/** One API node. */
await runProcess('web', async () => {
  const config = loadConfig()
  const log = createLog(config.log, 'web')
  const context = await openContext(config, log, 'web')
  const usage = new UsageMover(context)
  usage.open()
  const app = await createApp(context)
  const stopListening = await listen(app, config.http, log)
  return {
    log,
    close: async () => {
      context.isDraining = true
      await stopListening()
      await usage.close()
      await closeContext(context)
    },
  }
})
