import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Agent, request } from 'undici'
import { NODE_FLAGS } from '../../src/config.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { signUp } from '../support/client.ts'
import { startGateway, until } from '../support/gateway.ts'
import { UNLIMITED } from '../support/stage.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { cpuSeconds } from './measure.ts'

/** What calls cost while they wait for their upstream. */
export interface Waiting {
  calls: number
  workerCpuPercent: number
  webCpuPercent: number
  commandsPerSecond: number
  /**
   * The memory of API node and worker after they have collected their garbage, and of Redis.
   * Resident memory says less, because it includes older garbage: from run to run it was 40 to 70
   * KB a call.
   */
  kilobytesPerCall: number
}

const CALLS = 1_900
const SECONDS = 10

/**
 * It is shorter than the time of a call, because the gateway refuses a call whose slot comes after
 * its deadline.
 */
const WINDOW_SECONDS = 50

const PATH = '/v1/call/random-facts/random'
const QUEUE = capKeys.of('random-facts', 'shared', 'queue')

/** Uses up an upstream's cap, lets calls wait for the next window, and measures them. */
export async function measureWaiting(): Promise<Waiting> {
  const upstream = await startUpstreamServer()
  const fact = { id: 'a', text: 't', source: 's', source_url: 'u', language: 'en', permalink: 'p' }
  // The answer is complete. If it lacked members, a probe would take a slot of the cap.
  upstream.play('random-facts', () => fact)
  const gateway = await startGateway({
    execArgv: NODE_FLAGS,
    environment: {
      ...upstream.environment('random-facts'),
      UPSTREAM_RANDOM_FACTS_CAPS: `concurrency=64,${CALLS}/${WINDOW_SECONDS}`,
      CALL_TIMEOUT_MS: '60000',
      PLAN_LIMITS: UNLIMITED,
      NODE_OPTIONS: `--import=${import.meta.resolve('./memory-report.ts')}`,
    },
  })
  const redis = new Redis(gateway.services.redisUrl)
  const agent = new Agent({ connections: CALLS, pipelining: 1 })
  const processes = [...gateway.web, ...gateway.workers]
  const [web = 0, worker = 0] = processes.map(({ pid }) => pid ?? 0)
  const memory = async () =>
    (await Promise.all(processes.map(heldKilobytes))).reduce((sum, kilobytes) => sum + kilobytes, 0) +
    Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]) / 1_024
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  try {
    const { live } = await signUp(gateway)
    const leaving = new AbortController()
    const options = { dispatcher: agent, headers: { 'x-api-key': live }, signal: leaving.signal }
    const call = () => request(`${gateway.url}${PATH}`, options).then(({ body }) => body.dump())
    for (let count = 0; count < CALLS; count += 100) await Promise.all(Array.from({ length: 100 }, call))
    const before = await memory()
    const calls = Array.from({ length: CALLS }, () => call().catch(() => undefined))
    await until(async () => (await redis.zcard(QUEUE)) >= CALLS, 30_000)
    const from = {
      at: performance.now(),
      web: await cpuSeconds(web),
      worker: await cpuSeconds(worker),
      n: await commands(),
    }
    await delay(SECONDS * 1_000)
    const seconds = (performance.now() - from.at) / 1_000
    const result = {
      calls: CALLS,
      webCpuPercent: (((await cpuSeconds(web)) - from.web) / seconds) * 100,
      workerCpuPercent: (((await cpuSeconds(worker)) - from.worker) / seconds) * 100,
      commandsPerSecond: ((await commands()) - from.n) / seconds,
      kilobytesPerCall: ((await memory()) - before) / CALLS,
    }
    leaving.abort()
    await Promise.all(calls)
    return result
  } finally {
    await agent.destroy()
    redis.disconnect()
    await gateway.stop()
    await upstream.close()
  }
}

async function heldKilobytes(child: ChildProcess): Promise<number> {
  const told = once(child, 'message')
  child.kill('SIGUSR2')
  const [{ heldBytes }] = await told
  return heldBytes / 1_024
}
