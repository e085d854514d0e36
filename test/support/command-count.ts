import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'

/** Commands that some work cost in Redis. */
export interface CommandCount {
  /** Commands that came over the wire. */
  wire: number
  /** The same and the commands within scripts. */
  all: number
  /** Wire commands by name; scripts by the name of what they touch first. */
  byName: Record<string, number>
}

/** What processes send whether anybody calls or not; the rest is told by its keys. */
const PERIODIC = /^(time|info|exists|expire|hgetall|ping|monitor|smembers|client)$/

/** Keys of a call: its upstream, its account, its reply, its usage. */
const OF_CALLS = /\{(?:random-facts|weather|a:[0-9a-f-]+|reply-[0-9a-f-]+|call_[0-9a-f]+)\}|agw:wake-up/

/**
 * Counts the commands of calls while some work is done, by MONITOR: exactly, whatever the machine is busy with. Work of
 * the same kind is to end with a pause, so that what it leaves to batches is counted too.
 */
export async function countCommands(redisUrl: string, work: () => Promise<unknown>): Promise<CommandCount> {
  const redis = new Redis(redisUrl)
  const monitor = await redis.monitor()
  const count: CommandCount = { wire: 0, all: 0, byName: {} }
  let isCounted = false
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (source !== 'lua') {
      const name = args[0]?.toLowerCase() ?? ''
      const text = args.slice(0, 8).join(' ')
      isCounted = !PERIODIC.test(name) && OF_CALLS.test(text)
      if (!isCounted) return
      count.wire += 1
      const label =
        name === 'evalsha'
          ? `script of ${args
              .slice(3, 6)
              .join(' ')
              .replace(/[0-9a-f-]{30,}/g, '…')}`
          : name
      count.byName[label] = (count.byName[label] ?? 0) + 1
    }
    if (isCounted) count.all += 1
  })
  try {
    await work()
    await delay(50)
    return count
  } finally {
    monitor.disconnect()
    redis.disconnect()
  }
}
