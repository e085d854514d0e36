import { setTimeout as delay } from 'node:timers/promises'
import { openMonitor } from './monitor.ts'

/** The commands that some work costs in Redis. */
export interface CommandCount {
  /** Commands that were sent over the network. */
  wire: number
  /** These commands and the commands that scripts ran. */
  all: number
  /** Sent commands by name. Scripts are named by their first three keys. */
  byName: Record<string, number>
}

/**
 * Commands that processes send even if nobody calls. The keys of all other commands show their
 * purpose.
 */
const PERIODIC = /^(time|info|exists|expire|hgetall|ping|monitor|smembers|client)$/

/**
 * Keys of a call: its upstream, its account, its reply. Usage is left out, because nodes write it
 * five times a second at most.
 */
const OF_CALLS = /\{(?:random-facts|weather|a:[0-9a-f-]+|reply-[0-9a-f-]+|call_[0-9a-f]+)\}|agw:wake-up/

/**
 * Counts the commands of calls while some work is done. The count is exact even if the machine is
 * busy. The work must end with a pause, so that the count includes what it leaves to batches.
 */
export async function countCommands(redisUrl: string, work: () => Promise<unknown>): Promise<CommandCount> {
  const count: CommandCount = { wire: 0, all: 0, byName: {} }
  let isCounted = false
  const monitor = await openMonitor(redisUrl, ({ name, isOfScript, text }) => {
    if (!isOfScript) {
      isCounted = !PERIODIC.test(name) && OF_CALLS.test(text)
      if (!isCounted) return
      count.wire += 1
      const keys = [...text.matchAll(/"(agw:[^"]*)"/g)].map(([, key = '']) => key.replace(/[0-9a-f-]{30,}/g, '…'))
      const label = name === 'evalsha' ? `script of ${keys.slice(0, 3).join(' ')}` : name
      count.byName[label] = (count.byName[label] ?? 0) + 1
    }
    if (isCounted) count.all += 1
  })
  try {
    await work()
    await delay(50)
    return count
  } finally {
    monitor.close()
  }
}
