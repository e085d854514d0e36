import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../../src/catalog/catalog.ts'
import type { Endpoint, PrefetchRule, UpstreamRequest } from '../../src/catalog/upstream.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { loadScript } from '../../src/redis/script.ts'
import type { HttpExchange } from './attempt.ts'
import { classifyResponse } from './interpret.ts'

const takeItems = loadScript(new URL('./lua/take-prefetched.lua', import.meta.url))

/** How long one fill keeps others waiting, should its worker die; and how often those look. Milliseconds. */
const FILLING_MS = 15_000
const LOOK_EVERY_MS = 50

type Parameters = Record<string, unknown>

/** Takes items from a pool that one larger request fills. @returns undefined when no pool can serve the call */
export async function takePrefetched(
  redis: RedisConnection,
  call: PoolCall,
  signal: AbortSignal,
): Promise<HttpExchange | undefined> {
  const { api, rule, parameters } = call
  const key = upstreamKeys.pool(api.slug, rule.key(parameters))
  const count = rule.take(parameters)
  while (true) {
    const drawn = await draw(redis, key, count)
    if (drawn) return asExchange(rule, drawn)
    if ((await redis.exists(`${key}:unfillable`)) === 1) return undefined
    // One call fills it; a request of each would waste a scarce cap.
    if ((await redis.set(`${key}:filling`, 1, 'PX', FILLING_MS, 'NX')) === 'OK') break
    await delay(LOOK_EVERY_MS, undefined, { signal })
  }
  try {
    return await fill(redis, key, call)
  } finally {
    await redis.del(`${key}:filling`)
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
  redis: RedisConnection,
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
  const items = rule.items(exchange.answer.body)
  if (!items || items.length < count) {
    if (rule.unfillableSeconds) await redis.set(`${key}:unfillable`, 1, 'EX', rule.unfillableSeconds)
    return undefined
  }
  const rest = items.slice(count)
  if (rest.length > 0) {
    const texts = rest.map((item) => JSON.stringify(item))
    await redis
      .pipeline()
      .rpush(key, ...texts)
      .expire(key, rule.seconds)
      .exec()
  }
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
