import { readFile } from 'node:fs/promises'
import type { ProcessKind } from '../../src/config.ts'
import { openMonitor } from '../support/monitor.ts'
import { type Footprint, type KindSeconds, measureFootprints } from './footprint.ts'
import type { LoadGenerator, LoadResult } from './load.ts'
import type { Target } from './scenario.ts'
import type { PostgresWrites, Subject } from './subject.ts'

/** A run against a single subject. */
export interface Measurement extends LoadResult {
  /** CPU seconds (user and system) per 1 000 calls. */
  cpu: { web: number; worker: number; redis: number; sum: number }
  /** Commands over the wire, and all commands with the commands of scripts, per call. */
  wirePerCall: number
  commandsPerCall: number
  footprints: Footprint[]
  /** What Postgres commits and writes a second; undefined if the subject has no Postgres. */
  written: PostgresWrites | undefined
}

/** Ticks of /proc/PID/stat in a second: fixed for programs on Linux. */
const TICKS_PER_SECOND = 100

interface Snapshot {
  /** CPU time that the processes have used so far, seconds. */
  cpu: KindSeconds & { redis: number }
  commands: Map<string, number>
}

export interface MeasureOptions {
  target: Target
  connections: number
  seconds: number
  warmUpSeconds: number
}

/**
 * Requests are numbered over the life of the process, so that no two runs send the same requests.
 */
let firstNumber = 0
const NUMBERS_A_RUN = 1_000_000

/** Warms up, then measures. */
export async function measure(subject: Subject, load: LoadGenerator, options: MeasureOptions): Promise<Measurement> {
  const { target, connections, seconds, warmUpSeconds } = options
  const request = { ...(await subject.request(target)), connections }
  const run = (duration: number) => {
    firstNumber += NUMBERS_A_RUN
    return load.run({ ...request, seconds: duration, firstNumber })
  }
  const warmUp = await run(warmUpSeconds)
  const before = await snapshot(subject)
  const writtenBefore = await subject.postgres?.read()
  const result = await run(seconds)
  const after = await snapshot(subject)
  const writtenAfter = await subject.postgres?.read()
  const used = (process: ProcessKind | 'redis') => (after.cpu[process] ?? 0) - (before.cpu[process] ?? 0)
  const { web, worker } = { web: used('web'), worker: used('worker') }
  const footprints = await measureFootprints(subject, {
    cpu: { web, worker, ops: used('ops'), probe: used('probe') },
    seconds,
  })
  const wirePerCall = await countWire(subject, () => run(WIRE_SECONDS))
  const per1000 = (used: number) => (used / result.calls) * 1_000
  const cpu = { web: per1000(web), worker: per1000(worker), redis: per1000(used('redis')) }
  let all = 0
  for (const [name, calls] of after.commands) all += calls - (before.commands.get(name) ?? 0)
  return {
    ...result,
    failures: { ...warmUp.failures, ...result.failures },
    cpu: { ...cpu, sum: cpu.web + cpu.worker + cpu.redis },
    wirePerCall,
    commandsPerCall: all / result.calls,
    footprints,
    written:
      writtenBefore && writtenAfter
        ? {
            transactions: (writtenAfter.transactions - writtenBefore.transactions) / seconds,
            rows: (writtenAfter.rows - writtenBefore.rows) / seconds,
          }
        : undefined,
  }
}

/**
 * How long a run counts commands over the wire, seconds. The count is apart from the timed run,
 * because MONITOR costs Redis time.
 */
const WIRE_SECONDS = 1

/** Commands over the wire for each call. INFO would count commands within scripts too. */
async function countWire({ redis }: Subject, run: () => Promise<LoadResult>): Promise<number> {
  const { host, port, username, password } = redis.options
  let wire = 0
  const monitor = await openMonitor(`redis://${username || ''}:${password || ''}@${host}:${port}`, ({ isOfScript }) => {
    if (!isOfScript) wire += 1
  })
  const { calls } = await run()
  monitor.close()
  return wire / calls
}

async function snapshot({ processes, redis }: Subject): Promise<Snapshot> {
  const stats = await redis.info('commandstats')
  const commands = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
    ([, name = '', calls]): [string, number] => [name, Number(calls)],
  )
  const cpu: Snapshot['cpu'] = { redis: await redisPid(redis).then(cpuSeconds) }
  for (const [kind, pids] of Object.entries(processes) as [ProcessKind, number[]][]) cpu[kind] = await cpuOfAll(pids)
  return { cpu, commands: new Map(commands) }
}

async function cpuOfAll(pids: number[]): Promise<number> {
  return (await Promise.all(pids.map(cpuSeconds))).reduce((sum, seconds) => sum + seconds, 0)
}

async function redisPid(redis: Subject['redis']): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
}

/** CPU time that a process has used so far, user and system. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name, in brackets, may contain blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Memory that Redis uses, bytes. */
export async function redisBytes({ redis }: Subject): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
}
