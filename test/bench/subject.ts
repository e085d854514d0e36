import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { createApiKey } from '../../src/accounts/api-key.ts'
import { NODE_FLAGS } from '../../src/config.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { startServer } from './child.ts'
import { FIXTURE_KEYS, type FixtureOptions } from './fixture-admission.ts'
import { startNginx } from './nginx.ts'
import { writeOwnApis } from './own-apis.ts'
import type { Target } from './scenario.ts'
import { gatewayRequest, type Keys, peerRequest, spreadSlugs, storedPaths, type TargetRequest } from './target.ts'

/** A system that is measured: real processes and a Redis of their own. */
export interface Subject {
  name: string
  request: (target: Target) => Promise<TargetRequest>
  /**
   * Process ids. The CPU of API nodes and workers counts for a call; the CPU of Redis is added.
   */
  processes: { web: number[]; worker: number[]; ops?: number[]; probe?: number[] }
  redis: Redis
  /** Its Postgres, and how much Postgres has written so far; undefined if it has no Postgres. */
  postgres?: { port: number; read: () => Promise<PostgresWrites> }
  stop: () => Promise<void>
}

/** Totals since Postgres began to count. */
export interface PostgresWrites {
  transactions: number
  rows: number
}

/** How many processes of the gateway run. */
export interface GatewaySize {
  name: string
  webNodes: number
  workers: number
}

const UNLIMITED = { perMinute: 100_000_000, perMonth: 1_000_000_000, inFlight: 100_000 }
const WIDE = 'concurrency=256,1000000/1'

/**
 * Starts the gateway as operators deploy it. By default it has an API node and a worker, which
 * serves all upstreams.
 */
export async function startOurs(
  upstreamUrl: string,
  options: { profileFolder?: string | undefined; size?: GatewaySize; ownApis?: number } = {},
): Promise<Subject> {
  const { profileFolder, size, ownApis = 0 } = options
  const ownFolder = ownApis === 0 ? undefined : await writeOwnApis(ownApis, upstreamUrl)
  const gateway = await startGateway({
    webNodes: size?.webNodes ?? 1,
    workers: size?.workers ?? 1,
    // The flags with which operators run the gateway. The peers run with them too.
    execArgv: NODE_FLAGS,
    environment: {
      ...(await upstreamEnvironment(upstreamUrl)),
      ...(ownFolder === undefined ? {} : { UPSTREAMS_DIR: ownFolder }),
      PLAN_LIMITS: JSON.stringify({ Free: UNLIMITED, Pro: { ...UNLIMITED, perMinute: 1 } }),
      ...(profileFolder === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileFolder}` }),
    },
  })
  // A size is a whole deployment, with a person who watches the overview.
  const others = size ? await startOthers(gateway) : undefined
  const { live, test } = await signUp(gateway)
  const limited = await signUp(gateway)
  const keys: Keys = { live, test, limited: limited.live, unknown: createApiKey('live') }
  const redis = new Redis(gateway.services.redisUrl)
  const processes = [...gateway.web, ...gateway.workers]
  return {
    name: size?.name ?? 'gateway',
    request: async (target) => {
      // A single call uses up the limit of the `limited` account, so the limit is used up when the
      // scenario begins.
      if (target === 'limited') {
        await sql(gateway, 'update users set tier = $1 where id = $2', ['pro', limited.id])
        await send(gateway, '/v1/call/random-facts/random', { key: limited.live })
      }
      return await gatewayRequest(target, gateway.urls, keys)
    },
    processes: { web: pidsOf(gateway.web), worker: pidsOf(gateway.workers), ...others?.processes },
    redis,
    postgres: {
      port: Number(new URL(gateway.services.databaseUrl).port),
      read: async () => {
        const [counts] = await sql<PostgresWrites>(
          gateway,
          `select xact_commit::int as transactions, (tup_inserted + tup_updated + tup_deleted)::int as rows
           from pg_stat_database where datname = current_database()`,
        )
        return counts ?? { transactions: 0, rows: 0 }
      },
    },
    stop: async () => {
      // A process writes its profile only if it ends in order.
      if (profileFolder !== undefined) await endOrderly(processes)
      redis.disconnect()
      others?.leave()
      await gateway.stop()
      if (ownFolder !== undefined) await rm(ownFolder, { recursive: true, force: true })
    },
  }
}

/** Starts the console, with one open overview, and the probe process. */
async function startOthers(
  gateway: Gateway,
): Promise<{ processes: { ops: number[]; probe: number[] }; leave: () => void }> {
  const [ops, probe] = await Promise.all([
    gateway.startProcess('src/ops.ts', { OPS_PORT: '0' }),
    gateway.startProcess('workers/probe.ts'),
  ])
  const { listening } = ops.message as { listening: number }
  const watching = new AbortController()
  const events = await fetch(`http://127.0.0.1:${listening}/overview/events`, {
    headers: { authorization: `Bearer ${gateway.environment.OPERATOR_TOKEN}` },
    signal: watching.signal,
  })
  if (!events.ok) throw new Error(`the console answered ${events.status}`)
  events.body?.pipeTo(new WritableStream()).catch(() => undefined)
  return {
    processes: { ops: pidsOf([ops.child]), probe: pidsOf([probe.child]) },
    leave: () => watching.abort(),
  }
}

/** The name, among the subjects, of the version before. */
export const BEFORE = 'before'

/**
 * Starts the gateway of another checkout, so that both versions are measured in the same rounds.
 * The other checkout starts its own processes by its own code. Only the requests come from this
 * version.
 * @throws Error if the folder has no checkout with installed packages
 */
export async function startBefore(checkout: string, upstreamUrl: string): Promise<Subject> {
  const file = pathToFileURL(resolve(checkout, 'test/bench/subject.ts')).href
  const other = (await import(file)) as Pick<typeof import('./subject.ts'), 'startOurs'>
  const subject = await other.startOurs(upstreamUrl)
  return {
    ...subject,
    name: BEFORE,
    request: async (target) => {
      if (target !== 'spread-hit') return await subject.request(target)
      const call = await subject.request('call')
      const origins = new Set(call.urls.map((url) => new URL(url).origin))
      const paths = await storedPaths()
      return { ...call, urls: paths.flatMap((path) => [...origins].map((origin) => origin + path)) }
    },
  }
}

async function upstreamEnvironment(upstreamUrl: string): Promise<Record<string, string>> {
  const environment: Record<string, string> = {}
  for (const slug of await spreadSlugs()) {
    const name = slug.toUpperCase().replaceAll('-', '_')
    environment[`UPSTREAM_${name}_URL`] = `${upstreamUrl}/u/${slug}`
    environment[`UPSTREAM_${name}_CAPS`] = WIDE
  }
  // These subjects answer with bodies of the scenario's size.
  return { ...environment, UPSTREAM_RANDOM_FACTS_URL: upstreamUrl, UPSTREAM_WEATHER_URL: upstreamUrl }
}

function pidsOf(children: ChildProcess[]): number[] {
  return children.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))
}

async function endOrderly(processes: ChildProcess[]): Promise<void> {
  const ends = processes.map((child) => once(child, 'exit'))
  for (const child of processes) child.kill('SIGTERM')
  await Promise.all(ends)
}

/** Starts a proxy without a queue. */
export async function startDirect(upstreamUrl: string): Promise<Subject> {
  return await startFixture('direct', upstreamUrl, ['direct-web.ts'])
}

/** Starts a proxy without a queue that is put together from plugins. */
export async function startPlugins(upstreamUrl: string): Promise<Subject> {
  return await startFixture('plugins', upstreamUrl, ['plugin-web.ts'])
}

/** Starts a queue-backed proxy as people usually write it. */
export async function startNaive(upstreamUrl: string): Promise<Subject> {
  const files = ['naive-web.ts', 'naive-worker.ts']
  return await startFixture('naive', upstreamUrl, files)
}

/**
 * Starts the cheapest proxy that there is: nginx without key, limit or queue. It serves only plain
 * calls.
 */
export async function startFloor(upstreamUrl: string): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-bench-'))
  const server = await startRedis({ dataDir: folder, print: () => undefined })
  const redis = new Redis(server.url)
  const { child, url } = await startNginx(folder, upstreamUrl)
  return {
    name: FLOOR,
    request: async (target) => peerRequest(target, url, FIXTURE_KEYS),
    processes: { web: pidsOf([child]), worker: [] },
    redis,
    stop: async () => {
      child.kill('SIGKILL')
      redis.disconnect()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The name, among the subjects, of the cheapest proxy. */
export const FLOOR = 'nginx'

async function startFixture(name: string, upstreamUrl: string, files: string[]): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-bench-'))
  const server = await startRedis({ dataDir: folder, print: () => undefined })
  const options: FixtureOptions = { redisUrl: server.url, upstreamUrl }
  const redis = new Redis(server.url)
  const [web, worker] = await Promise.all(files.map((file) => startServer(file, options)))
  return {
    name,
    request: async (target) => peerRequest(target, web?.url ?? '', FIXTURE_KEYS),
    processes: { web: pidsOf(web ? [web.child] : []), worker: pidsOf(worker ? [worker.child] : []) },
    redis,
    stop: async () => {
      for (const process of [web, worker]) process?.child.kill('SIGKILL')
      redis.disconnect()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
