import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type OwnServices, startOwnServices } from '../support/services.ts'
import { UNLIMITED } from '../support/stage.ts'
import { type CallRecord, Load, type LoadOptions } from './load.ts'
import { NARROW, pathOf } from './nonce.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { type ChaosUpstream, startChaosUpstream } from './upstream.ts'

/** A whole deployment on loopback in which every part can be made to fail. */
export interface Rig {
  gateway: Gateway
  services: OwnServices
  /** Between the gateway and its stores. */
  redis: TcpProxy
  postgres: TcpProxy
  /** A connection to Redis past the proxy. */
  store: Redis
  upstream: ChaosUpstream
  /** Set if the scenario has a small disk. */
  disk: SmallDisk | undefined
  accounts: Account[]
  /** Calls made before the load. */
  warmUps: number
  offer: (options: Omit<LoadOptions, 'urls' | 'keys'>) => Promise<CallRecord[]>
  /** One call to the wide upstream. */
  call: (key: string) => Promise<CallRecord>
  /** Pseudo-random numbers from the seed, 0 to 1. */
  random: () => number
  say: (line: string) => void
  stop: () => Promise<void>
}

export interface RigOptions {
  webNodes: number
  workers: number
  seed: number
  say: (line: string) => void
  environment?: Record<string, string>
  /** The stores' files lie on a disk of this size, MB. */
  diskMb?: number | undefined
  /** Folder of the checkout from which the first processes are started. Default: this checkout. */
  before?: string | undefined
}

const ACCOUNTS = 4

export async function startRig({
  webNodes,
  workers,
  seed,
  say,
  environment,
  diskMb,
  before,
}: RigOptions): Promise<Rig> {
  const folder = diskMb === undefined ? undefined : await mkdtemp(join(tmpdir(), 'agw-disk-'))
  // If this user is root, Postgres runs as another user, who must reach the folder.
  if (folder) await chmod(folder, 0o755)
  const disk = folder === undefined ? undefined : await mountSmallDisk(folder, diskMb ?? 0)
  const services = await startOwnServices({ parent: folder })
  const upstream = await startChaosUpstream()
  const redis = await startTcpProxy(addressOf(services.redisUrl))
  const postgres = await startTcpProxy(addressOf(services.databaseUrl))
  const gateway = await startGateway({
    webNodes,
    workers,
    firstCheckout: before,
    services: {
      folder: services.folder,
      redisUrl: through(services.redisUrl, redis),
      databaseUrl: through(services.databaseUrl, postgres),
    },
    environment: {
      PLAN_LIMITS: UNLIMITED,
      LOG_LEVEL: 'warn',
      UPSTREAM_WEATHER_URL: `http://127.0.0.1:${upstream.port}/weather`,
      UPSTREAM_AIR_QUALITY_URL: `http://127.0.0.1:${upstream.port}/air-quality`,
      UPSTREAM_WEATHER_CAPS: 'concurrency=64,1000000/60',
      UPSTREAM_AIR_QUALITY_CAPS: `concurrency=${NARROW.concurrency},${NARROW.max}/${NARROW.windowMs / 1_000}`,
      ...environment,
    },
  })
  const load = new Load()
  const store = new Redis(services.redisUrl)
  const accounts: Account[] = []
  for (let index = 0; index < ACCOUNTS; index += 1) accounts.push(await signUp(gateway))
  const keys = accounts.map(({ live }) => live)
  const warmUps = await warmUp(gateway, keys)
  return {
    gateway,
    services,
    redis,
    postgres,
    store,
    upstream,
    disk,
    accounts,
    warmUps,
    offer: (options) => load.run({ ...options, keys, urls: () => gateway.urls }),
    call: (key) => load.call('weather', { urls: () => gateway.urls, keys: [key] }),
    random: randomFrom(seed),
    say,
    stop: async () => {
      await load.close()
      store.disconnect()
      await gateway.stop()
      await Promise.all([redis.close(), postgres.close(), upstream.close()])
      await disk?.free()
      await services.stop()
      await disk?.unmount()
      if (folder) await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Calls every node with every key, so that the nodes know all keys, like nodes that have served for
 * a while.
 */
async function warmUp(gateway: Gateway, keys: string[]): Promise<number> {
  let nonce = 0
  for (const url of gateway.urls) {
    for (const key of keys) {
      nonce += 1
      await send(gateway, pathOf('weather', nonce), { url, key })
    }
  }
  return nonce
}

/**
 * Replaces the worker `index`, or a random worker. SIGKILL ends it without warning, SIGTERM in
 * order.
 */
export async function replaceWorker(
  { gateway, random }: Rig,
  signal: NodeJS.Signals,
  index = Math.floor(random() * gateway.workers.length),
): Promise<void> {
  const [worker] = gateway.workers.splice(index, 1)
  if (!worker) return
  // A worker that gets SIGTERM serves until another worker is there, as in a rolling deployment.
  if (signal === 'SIGTERM') await gateway.startWorker()
  const ended = once(worker, 'exit')
  worker.kill(signal)
  await ended
  if (signal !== 'SIGTERM') await gateway.startWorker()
}

/**
 * Ends an API node and starts another. If the signal kills the node, its callers' connections end
 * with it.
 */
export async function replaceNode({ gateway }: Rig, signal: NodeJS.Signals): Promise<void> {
  const node = gateway.web.shift()
  const url = gateway.urls.shift()
  if (!node || url === undefined) return
  if (signal === 'SIGTERM') {
    await gateway.startWeb()
    // The load balancer still knows it, and learns from /readyz that it drains.
    gateway.urls.push(url)
  }
  const ended = once(node, 'exit')
  node.kill(signal)
  await ended
  if (signal === 'SIGTERM') gateway.urls.splice(gateway.urls.indexOf(url), 1)
  else await gateway.startWeb()
}

/** Stops a process for some time, as if its machine was suspended. */
export async function freeze(pid: number, ms: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  try {
    await delay(ms)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

function through(url: string, { port }: TcpProxy): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  return changed.href
}

/** Mulberry32, a small generator whose numbers depend only on the seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
