import { createApp } from './app.ts'
import { loadProcessConfig } from './config.ts'
import { closeContext, openContext } from './context.ts'
import { GatewayError } from './errors.ts'
import { listen } from './http/listen.ts'
import { UsageFlusher } from './limits/usage-flusher.ts'
import { createLog } from './log.ts'
import { runProcess } from './process.ts'

/** How long callers may wait on a node that was told to end, milliseconds; then what waits for them is taken back. */
const WAITING_MS_MAX = 20_000

/** One API node. */
await runProcess('web', async () => {
  const config = loadProcessConfig('web')
  const log = createLog(config.log, 'web')
  const context = await openContext(config, log, 'web')
  const usage = new UsageFlusher(context)
  usage.open()
  const app = await createApp(context)
  const stopListening = await listen(app, config.http, log)
  return {
    log,
    close: async () => {
      context.isDraining = true
      // A caller who waits longer is told to ask again while there is still a connection to tell it on.
      const refusing = setTimeout(() => context.replies.refuse(new GatewayError('DRAINING')), WAITING_MS_MAX)
      await stopListening()
      clearTimeout(refusing)
      await usage.close()
      await closeContext(context)
    },
  }
})
