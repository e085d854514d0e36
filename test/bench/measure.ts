import { readFile } from 'node:fs/promises'
import type { LoadGenerator, LoadResult } from './load.ts'
import type { Subject } from './subject.ts'

/** One run against one subject. */
export interface Measurement extends LoadResult {
  /** CPU seconds (user and system) per 1 000 calls. */
  cpu: { web: number; worker: number; redis: number; sum: number }
  /** Commands over the wire, and all commands with those in scripts, per call. */
  wirePerCall: number
  commandsPerCall: number
}

/** Ticks of /proc/PID/stat in a second: fixed for programs on Linux. */
const TICKS_PER_SECOND = 100

interface Snapshot {
  web: number
  worker: number
  redis: number
  commands: Map<string, number>
}

/** Warms up, then measures. */
export async function measure(
  subject: Subject,
  load: LoadGenerator,
  { connections, seconds, warmUpSeconds }: { connections: number; seconds: number; warmUpSeconds: number },
): Promise<Measurement> {
  const request = { url: subject.url, headers: subject.headers, connections }
  const warmUp = await load.run({ ...request, seconds: warmUpSeconds })
  const before = await snapshot(subject)
  const result = await load.run({ ...request, seconds })
  const after = await snapshot(subject)
  const per1000 = (process: 'web' | 'worker' | 'redis') => ((after[process] - before[process]) / result.calls) * 1_000
  const cpu = { web: per1000('web'), worker: per1000('worker'), redis: per1000('redis') }
  let all = 0
  let wire = 0
  for (const [name, calls] of after.commands) {
    const count = calls - (before.commands.get(name) ?? 0)
    all += count
    if (subject.wire.names.includes(name)) wire += count
  }
  return {
    ...result,
    failures: { ...warmUp.failures, ...result.failures },
    cpu: { ...cpu, sum: cpu.web + cpu.worker + cpu.redis },
    wirePerCall: wire / result.calls + subject.wire.others,
    commandsPerCall: all / result.calls,
  }
}

async function snapshot({ processes, redis }: Subject): Promise<Snapshot> {
  const stats = await redis.info('commandstats')
  const commands = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
    ([, name = '', calls]): [string, number] => [name, Number(calls)],
  )
  const [web, worker, server] = await Promise.all([
    cpuSeconds(processes.web),
    processes.worker === undefined ? 0 : cpuSeconds(processes.worker),
    redisPid(redis).then(cpuSeconds),
  ])
  return { web, worker, redis: server, commands: new Map(commands) }
}

async function redisPid(redis: Subject['redis']): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
}

/** What a process has used so far, user and system. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name, in brackets, may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Memory that Redis uses, bytes. */
export async function redisBytes({ redis }: Subject): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
}
