import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Job, Queue, Worker } from 'bullmq'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { QueueWorker } from '../../workers/queue/queue-worker.ts'

/**
 * Compares our loop of a worker with BullMQ's own in interleaved rounds on one Redis, by what a job
 * costs: `node test/bench/worker-loop.ts [--rounds 7] [--jobs 1000]`. Jobs do nothing, so that only
 * the loop differs. Counts of commands do not depend on the machine's speed; times do.
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, jobs: { type: 'string', default: '1000' } },
})

/** As in `workers/worker.ts`: more than the number of jobs that can be under way. */
const CONCURRENCY = 1_024
const LOOPS = { ours: QueueWorker, BullMQ: Worker } as const
type Loop = keyof typeof LOOPS

const folder = await mkdtemp(join(tmpdir(), 'agw-bench-'))
const server = await startRedis({ dataDir: folder, print: () => undefined })
const redis = openRedis([server.url], 'blocking', createLog({ level: 'silent', pretty: false }, 'bench'))

/** A queue whose jobs take as long as an answer that comes at once, and its worker. */
async function openLoop(loop: Loop) {
  const queue = new Queue(loop, { connection: redis, defaultJobOptions: { removeOnComplete: true } })
  const runs = new Map<string, () => void>()
  const ends = new Map<string, () => void>()
  const run = async ({ id = '' }: Job): Promise<null> => {
    runs.get(id)?.()
    await redis.ping()
    return null
  }
  // The function has three named parameters, as in `workers/worker.ts`, because BullMQ passes a
  // signal only to a function with three.
  const worker = new LOOPS[loop](loop, (job: Job, _token?: string, _signal?: AbortSignal) => run(job), {
    ...{ connection: redis, concurrency: CONCURRENCY, autorun: false },
    ...{ lockDuration: 4_000, stalledInterval: 1_000, drainDelay: 5, removeOnComplete: { count: 0 } },
  })
  worker.on('completed', ({ id = '' }) => ends.get(id)?.())
  await worker.waitUntilReady()
  void worker.run()
  let added = 0
  /**
   * Adds a job and waits until it has ended.
   * @returns how long it took until the job ran, milliseconds
   */
  const addAndAwait = async (): Promise<number> => {
    added += 1
    const id = `${loop}-${added}`
    const startedAt = performance.now()
    const isRunning = new Promise<number>((resolve) => runs.set(id, () => resolve(performance.now() - startedAt)))
    const isEnded = new Promise<void>((resolve) => ends.set(id, resolve))
    await queue.add('job', {}, { jobId: id })
    await isEnded
    runs.delete(id)
    ends.delete(id)
    return await isRunning
  }
  const close = async (): Promise<void> => void (await Promise.all([worker.close(), queue.close()]))
  return { addAndAwait, close }
}

async function usage(): Promise<{ cpuUs: number; redisUs: number; commands: number }> {
  const text = await redis.info('everything')
  const read = (name: string): number => Number(new RegExp(`${name}:([\\d.]+)`).exec(text)?.[1])
  let commands = 0
  for (const [, calls] of text.matchAll(/cmdstat_\S+:calls=(\d+)/g)) commands += Number(calls)
  const { user, system } = process.cpuUsage()
  const redisUs = (read('used_cpu_sys') + read('used_cpu_user')) * 1e6
  return { cpuUs: user + system + redisUs, redisUs, commands }
}

interface Cost {
  commands: number
  cpuUs: number
  /** Median time from `add` to the run of the job, milliseconds. */
  latencyMs: number
}

async function measure(addAndAwait: () => Promise<number>, { jobs, together }: { jobs: number; together: number }) {
  const latencies: number[] = []
  const before = await usage()
  for (let done = 0; done < jobs; done += together) {
    latencies.push(...(await Promise.all(Array.from({ length: together }, addAndAwait))))
  }
  const after = await usage()
  const cost: Cost = {
    commands: (after.commands - before.commands) / jobs,
    cpuUs: (after.cpuUs - before.cpuUs) / jobs,
    latencyMs: median(latencies),
  }
  return cost
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN
}

const loops = { ours: await openLoop('ours'), BullMQ: await openLoop('BullMQ') }
try {
  const jobs = Number(values.jobs)
  for (const together of [1, 4, 16]) {
    const costs: Record<Loop, Cost[]> = { ours: [], BullMQ: [] }
    for (const { addAndAwait } of Object.values(loops)) await measure(addAndAwait, { jobs, together })
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const order: Loop[] = round % 2 === 0 ? ['ours', 'BullMQ'] : ['BullMQ', 'ours']
      for (const loop of order) costs[loop].push(await measure(loops[loop].addAndAwait, { jobs, together }))
    }
    const show = (member: keyof Cost): string => {
      const [ours, theirs] = [costs.ours, costs.BullMQ].map((all) => median(all.map((cost) => cost[member])))
      const ratio = median(costs.ours.map((cost, round) => cost[member] / (costs.BullMQ[round]?.[member] ?? 0)))
      return `${member} ours ${ours?.toFixed(2)}, BullMQ ${theirs?.toFixed(2)}, median of ratios ${ratio.toFixed(2)}`
    }
    console.log(`${together} at a time: ${(['commands', 'cpuUs', 'latencyMs'] as const).map(show).join(' · ')}`)
  }
} finally {
  await Promise.all(Object.values(loops).map((loop) => loop.close()))
  await closeRedis(redis)
  await server.stop()
  await rm(folder, { recursive: true, force: true })
}
