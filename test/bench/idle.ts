import { setTimeout as delay } from 'node:timers/promises'
import { residentMegabytes } from './footprint.ts'
import { cpuSeconds } from './measure.ts'
import type { Subject } from './subject.ts'

/** What the gateway costs while nobody calls. */
export interface Idle {
  workerCpuPercent: number
  webCpuPercent: number
  connections: number
  workerMegabytes: number
  commandsPerSecond: number
}

/** Watches an idle gateway for `seconds`. */
export async function measureIdle({ processes, redis }: Subject, seconds: number): Promise<Idle> {
  const look = async () => ({
    at: performance.now(),
    worker: await cpuSeconds(processes.worker[0] ?? 0),
    web: await cpuSeconds(processes.web[0] ?? 0),
    commands: Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]),
  })
  const before = await look()
  await delay(seconds * 1_000)
  const after = await look()
  const took = (after.at - before.at) / 1_000
  return {
    workerCpuPercent: ((after.worker - before.worker) / took) * 100,
    webCpuPercent: ((after.web - before.web) / took) * 100,
    connections: Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]) - 1,
    workerMegabytes: await residentMegabytes(processes.worker[0] ?? 0),
    commandsPerSecond: (after.commands - before.commands) / took,
  }
}
