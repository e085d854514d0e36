import { readFile } from 'node:fs/promises'
import type { ProcessKind } from '../../src/config.ts'
import { connectionsOf } from '../support/connections.ts'
import type { Subject } from './subject.ts'

/** What a process of a kind needs under load. Each figure is for a single process. */
export interface Footprint {
  kind: ProcessKind
  processes: number
  /** Share of a core. */
  cpuPercent: number
  megabytes: number
  redisConnections: number
  postgresConnections: number
}

/** CPU time of the processes of each kind between two moments, seconds. */
export type KindSeconds = Partial<Record<ProcessKind, number>>

/** Measures every process of a subject, whose processes used `cpu` within `seconds`. */
export async function measureFootprints(
  { processes, redis, postgres }: Subject,
  { cpu, seconds }: { cpu: KindSeconds; seconds: number },
): Promise<Footprint[]> {
  return await Promise.all(
    (Object.entries(processes) as [ProcessKind, number[]][]).map(async ([kind, pids]) => {
      const each = await Promise.all(
        pids.map(async (pid) => {
          const connections = await connectionsOf(pid)
          return {
            megabytes: await residentMegabytes(pid),
            redis: connections(redis.options.port),
            postgres: connections(postgres?.port),
          }
        }),
      )
      const count = Math.max(1, each.length)
      const mean = (figure: 'megabytes' | 'redis' | 'postgres'): number =>
        each.reduce((sum, one) => sum + one[figure], 0) / count
      return {
        kind,
        processes: each.length,
        cpuPercent: ((cpu[kind] ?? 0) / seconds / count) * 100,
        megabytes: mean('megabytes'),
        redisConnections: mean('redis'),
        postgresConnections: mean('postgres'),
      }
    }),
  )
}

/** Memory of a process that is in RAM, MB. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}
