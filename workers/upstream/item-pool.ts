import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../../src/catalog/catalog.ts'
import type { Endpoint, PrefetchRule, UpstreamRequest } from '../../src/catalog/upstream.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { extendLock, releaseLock } from '../../src/redis/lock.ts'
import { loadScript } from '../../src/redis/script.ts'
import type { HttpExchange } from './attempt.ts'
import { classifyResponse } from './interpret.ts'

const takeItems = loadScript(new URL('./lua/take-prefetched.lua', import.meta.url))
const storeItems = loadScript(new URL('./lua/store-prefetched.lua', import.meta.url))

/** How long the fill of a worker that died keeps others waiting, how often a fill is renewed, how often the others look. */
const FILLING_MS = 6_000
const RENEW_EVERY_MS = 2_000
const LOOK_EVERY_MS = 50

type Parameters = Record<string, unknown>

export interface PoolDeps {
  redis: RedisConnection
  log: Log
}

/** Takes items from a pool that one larger request fills. @returns undefined when no pool can serve the call */
export async function takePrefetched(
  deps: PoolDeps,
  call: PoolCall,
  signal: AbortSignal,
): Promise<HttpExchange | undefined> {
  const { redis, log } = deps
  const { api, rule, parameters } = call
  const key = upstreamKeys.pool(api.slug, rule.key(parameters))
  const count = rule.take(parameters)
  const [lock, token] = [`${key}:filling`, randomUUID()]
  while (true) {
    const drawn = await draw(redis, key, count)
    if (drawn) return asExchange(rule, drawn)
    if ((await redis.exists(`${key}:unfillable`)) === 1) return undefined
    // One call fills it; a request of each would waste a scarce cap. A command that is sent again finds its own token.
    const holder = await redis.set(lock, token, 'PX', FILLING_MS, 'NX', 'GET')
    if (holder === null || holder === token) break
    await delay(LOOK_EVERY_MS, undefined, { signal })
  }
  // It may wait for its permit as long as its call may.
  const renewing = setInterval(() => {
    const extended = extendLock(redis, lock, { tokens: [token], lifeMs: FILLING_MS })
    extended.catch((error) => log.debug({ err: error, key }, 'failed to extend the lock of a pool that is filled'))
  }, RENEW_EVERY_MS)
  try {
    return await fill(deps, key, call)
  } finally {
    clearInterval(renewing)
    const released = releaseLock(redis, lock, [token])
    released.catch((error) => log.debug({ err: error, key }, 'failed to release the lock of a pool that is filled'))
  }
}

interface PoolCall {
  api: Api
  endpoint: Endpoint
  rule: PrefetchRule<Parameters>
  parameters: Parameters
  send: (request: UpstreamRequest) => Promise<HttpExchange>
}

async function fill(
  { redis, log }: PoolDeps,
  key: string,
  { api, endpoint, rule, parameters, send }: PoolCall,
): Promise<HttpExchange | undefined> {
  const count = rule.take(parameters)
  // It may have been filled meanwhile.
  const drawn = await draw(redis, key, count)
  if (drawn) return asExchange(rule, drawn)
  const exchange = await send(rule.request(parameters))
  // Refused or over its limit: so is this call.
  if (classifyResponse(api.upstream, endpoint, exchange.answer)) return exchange
  // Fails open: the call has its answer, and a pool that was not filled costs another request.
  const remember = (storing: Promise<unknown>): Promise<unknown> =>
    storing.catch((error) => log.warn({ err: error, key }, 'failed to fill a pool'))
  const items = rule.items(exchange.answer.body)
  if (!items || items.length < count) {
    if (rule.unfillableSeconds) await remember(redis.set(`${key}:unfillable`, 1, 'EX', rule.unfillableSeconds))
    return undefined
  }
  const rest = items.slice(count).map((item) => JSON.stringify(item))
  if (rest.length > 0) await remember(storeItems.run(redis, [key], [rule.seconds, ...rest]))
  return asExchange(rule, items.slice(0, count))
}

async function draw(redis: RedisConnection, key: string, count: number): Promise<unknown[] | undefined> {
  const texts = (await takeItems.run(redis, [key], [count])) as string[]
  return texts.length === 0 ? undefined : texts.map((text) => JSON.parse(text))
}

function asExchange(rule: PrefetchRule<Parameters>, items: unknown[]): HttpExchange {
  const body = rule.body(items)
  return { answer: { status: 200, headers: {}, body }, text: JSON.stringify(body) }
}
