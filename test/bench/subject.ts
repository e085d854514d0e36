import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { startServer } from './child.ts'
import { FIXTURE_KEY, type FixtureOptions } from './fixture-admission.ts'

/** What is measured: real processes and a Redis of their own. */
export interface Subject {
  name: SubjectName
  /** One call. */
  url: string
  headers: Record<string, string>
  /** Process ids whose CPU counts; that of Redis is added. */
  processes: { web: number; worker?: number }
  redis: Redis
  /**
   * Commands that reach Redis over the wire: those of these names, which no script runs, and so many others a call.
   * INFO counts the commands within scripts too.
   */
  wire: { names: string[]; others: number }
  stop: () => Promise<void>
}

export type SubjectName = 'direct' | 'naive' | 'gateway'

const SCRIPTS_AND_READS = ['evalsha', 'eval', 'bzpopmin', 'xread', 'xtrim', 'publish']

/** The upstream that answers anew each time: nothing of it is cached or shared. */
const SLUG = 'random-facts'
const UNLIMITED = { perMinute: 100_000_000, perMonth: 1_000_000_000, inFlight: 100_000 }

/** The gateway as it is deployed: one API node and one worker for all its upstreams. */
export async function startOurs(upstreamUrl: string, profileFolder: string | undefined): Promise<Subject> {
  const gateway = await startGateway({
    environment: {
      UPSTREAM_RANDOM_FACTS_URL: upstreamUrl,
      UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=256,1000000/1',
      PLAN_LIMITS: JSON.stringify({ Free: UNLIMITED }),
      ...(profileFolder === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileFolder}` }),
    },
  })
  const { live } = await signUp(gateway)
  const redis = new Redis(gateway.services.redisUrl)
  const processes = [...gateway.web, ...gateway.workers]
  const [web, worker] = processes
  return {
    name: 'gateway',
    url: `${gateway.url}/v1/call/${SLUG}/random`,
    headers: { 'x-api-key': live },
    processes: { web: web?.pid ?? 0, worker: worker?.pid ?? 0 },
    redis,
    // The reply, and the usage of the call.
    wire: { names: SCRIPTS_AND_READS, others: 2 },
    stop: async () => {
      // A profile is written at an orderly end.
      if (profileFolder !== undefined) await endOrderly(processes)
      redis.disconnect()
      await gateway.stop()
    },
  }
}

async function endOrderly(processes: ChildProcess[]): Promise<void> {
  const ends = processes.map((child) => once(child, 'exit'))
  for (const child of processes) child.kill('SIGTERM')
  await Promise.all(ends)
}

/** A proxy without a queue. */
export async function startDirect(upstreamUrl: string): Promise<Subject> {
  return await startFixture('direct', upstreamUrl, ['direct-web.ts'], { names: ['hgetall', 'evalsha'], others: 0 })
}

/** A queue-backed proxy as it is usually written. */
export async function startNaive(upstreamUrl: string): Promise<Subject> {
  const files = ['naive-web.ts', 'naive-worker.ts']
  // The look-up of its key.
  return await startFixture('naive', upstreamUrl, files, { names: SCRIPTS_AND_READS, others: 1 })
}

async function startFixture(
  name: SubjectName,
  upstreamUrl: string,
  files: string[],
  wire: Subject['wire'],
): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-bench-'))
  const server = await startRedis({ dataDir: folder, say: () => undefined })
  const options: FixtureOptions = { redisUrl: server.url, upstreamUrl }
  const redis = new Redis(server.url)
  const [web, worker] = await Promise.all(files.map((file) => startServer(file, options)))
  return {
    name,
    url: `${web?.url}/random`,
    headers: { 'x-api-key': FIXTURE_KEY },
    processes: { web: web?.child.pid ?? 0, ...(worker ? { worker: worker.child.pid ?? 0 } : {}) },
    redis,
    wire,
    stop: async () => {
      for (const process of [web, worker]) process?.child.kill('SIGKILL')
      redis.disconnect()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
