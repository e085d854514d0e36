/**
 * A process for tests of the supervisor. It prints `up` and its number, ends at once if the file of
 * `CRASH_FILE` exists, or is never ready.
 */
import { existsSync } from 'node:fs'

if (existsSync(process.env.CRASH_FILE ?? '')) process.exit(3)
if (process.env.NEVER_READY === undefined) process.send?.({ ready: true })
console.log(`up ${process.pid}`)
setInterval(() => undefined, 60_000)
