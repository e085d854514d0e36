import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Subject } from './subject.ts'

/** What the processes of one kind take under load. Each figure is for one process. */
export interface Footprint {
  kind: 'web' | 'worker'
  processes: number
  megabytes: number
  redisConnections: number
  postgresConnections: number
}

/** Measures every process of a subject. */
export async function measureFootprints({ processes, redis, postgres }: Subject): Promise<Footprint[]> {
  const remotePorts = await readRemotePorts()
  const ports = { redis: redis.options.port, postgres: postgres?.port }
  return await Promise.all(
    (['web', 'worker'] as const).map(async (kind) => {
      const each = await Promise.all(
        processes[kind].map(async (pid) => {
          const connected = (await readSockets(pid)).map((inode) => remotePorts.get(inode))
          return {
            megabytes: await residentMegabytes(pid),
            redis: connected.filter((port) => port === ports.redis).length,
            postgres: connected.filter((port) => port !== undefined && port === ports.postgres).length,
          }
        }),
      )
      const mean = (figure: 'megabytes' | 'redis' | 'postgres'): number =>
        each.reduce((sum, one) => sum + one[figure], 0) / Math.max(1, each.length)
      return {
        kind,
        processes: each.length,
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

/** Inodes of the sockets that a process has. */
async function readSockets(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')))
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** The port at the other end of each TCP connection of this machine, by the inode of its socket. */
async function readRemotePorts(): Promise<Map<string, number>> {
  const ports = new Map<string, number>()
  for (const table of await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8')))) {
    for (const line of table.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/)
      const [, port = ''] = fields[2]?.split(':') ?? []
      if (fields[9] !== undefined) ports.set(fields[9], Number.parseInt(port, 16))
    }
  }
  return ports
}
