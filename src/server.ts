import { ExpiryWatch } from './accounts/notices.ts'
import { createApp } from './app.ts'
import { closeContext, openContext } from './context.ts'
import { OldRowsCleaner } from './db/old-rows.ts'
import { GatewayError } from './errors.ts'
import { listen } from './http/server/listen.ts'
import { UsageFlusher } from './limits/usage-flusher.ts'
import { createLog } from './log.ts'
import { loadSettings, runProcess } from './process.ts'
import { unlessAway } from './redis/connection.ts'

/**
 * How long callers may wait on a closing node, milliseconds. Then their queued calls are withdrawn.
 */
const WAITING_MS_MAX = 20_000

/** One API node. */
await runProcess('web', async () => {
  const config = await loadSettings('web')
  const log = createLog(config.log, 'web')
  const context = await openContext(config, log, 'web')
  const usage = new UsageFlusher(context)
  usage.open()
  const oldRows = new OldRowsCleaner(context)
  oldRows.open()
  const expiry = new ExpiryWatch(context)
  expiry.open()
  const app = await createApp(context)
  const stopListening = await listen(app, config.http, log)
  return {
    log,
    finish: async () => {
      context.isDraining = true
      context.telemetry.drain()
      const endCalls = () => context.replies.rejectAll(new GatewayError('DRAINING'))
      // Callers that still wait get 503 DRAINING while their connections are still open.
      const timer = setTimeout(endCalls, WAITING_MS_MAX)
      const stopping = stopListening()
      // Replies come through Redis. Without it, nothing that waits will be answered.
      if ((await unlessAway(context.redis, stopping)) === 'away') endCalls()
      await stopping
      clearTimeout(timer)
    },
    close: async () => {
      await Promise.all([usage.close(), oldRows.close(), expiry.close()])
      await closeContext(context)
    },
  }
})
