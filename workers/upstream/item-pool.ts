import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { PrefetchRule } from '../../src/catalog/cache-rule.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import type { UpstreamRequest } from '../../src/catalog/upstream-request.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { extendLock, releaseLock } from '../../src/redis/lock.ts'
import { loadScript } from '../../src/redis/script.ts'
import type { ClassifiedExchange, Sending } from './send-under-permit.ts'

const takeItems = loadScript(new URL('./lua/take-prefetched.lua', import.meta.url))
const storeItems = loadScript(new URL('./lua/store-prefetched.lua', import.meta.url))

/**
 * How long the request of a worker that died keeps others waiting, and the interval of its renewal,
 * milliseconds.
 */
const FILLING_MS = 6_000
const RENEW_EVERY_MS = 2_000

/**
 * How often a call looks whether another call has filled the pool, while it waits for its permit
 * and while the request of the other call is under way.
 */
const LOOK_EVERY_MS = 250
const LOOK_FILLED_MS = 50

type Parameters = Record<string, unknown>

export interface PoolDeps {
  redis: RedisConnection
  log: Log
}

export interface PoolCall {
  api: Api
  endpoint: Endpoint
  rule: PrefetchRule<Parameters>
  parameters: Parameters
  send: (request: UpstreamRequest, unlessFilled: UnlessFilled) => Promise<ClassifiedExchange>
}

/** Keeps back a request that fills a pool if another call has filled the pool meanwhile. */
export type UnlessFilled = Pick<Sending, 'ensureNeeded' | 'waitSignal'>

interface Pool {
  key: string
  /** Held while a request that fills the pool is under way. */
  lock: string
  unfillable: string
  count: number
}

/**
 * Takes items from a pool that one larger request fills. Each call waits for a permit of its own,
 * in the cap's order: a call that waited for another's request to be sent would have no share of
 * the cap.
 * @returns undefined if no pool can serve the call
 */
export async function takePrefetched(
  deps: PoolDeps,
  call: PoolCall,
  signal: AbortSignal,
): Promise<ClassifiedExchange | undefined> {
  const { redis } = deps
  const { api, rule, parameters } = call
  const key = upstreamKeys.pool(api.slug, rule.key(parameters))
  const pool = { key, lock: `${key}:filling`, unfillable: `${key}:unfillable`, count: rule.take(parameters) }
  while (true) {
    const drawn = await draw(redis, pool)
    if (drawn) return asExchange(rule, drawn)
    if ((await redis.exists(pool.unfillable)) === 1) return undefined
    const filled = await drawOrFill(deps, call, pool)
    if (filled !== 'again') return filled
    // The other call's request may bring too few items. Then this call waits for a permit again.
    while ((await redis.exists(pool.lock)) === 1) await delay(LOOK_FILLED_MS, undefined, { signal })
  }
}

class NeedlessError extends Error {}

/**
 * Waits for a permit and fills the pool, unless another call does so before.
 *
 * @returns 'again' if another call fills the pool now, or no request can fill it
 */
async function drawOrFill(
  deps: PoolDeps,
  call: PoolCall,
  pool: Pool,
): Promise<ClassifiedExchange | undefined | 'again'> {
  const { redis, log } = deps
  const token = randomUUID()
  const looks = lookForItems(deps, pool)
  let drawn: unknown[] | undefined
  let mayHold = false
  let renewing: NodeJS.Timeout | undefined
  const ensureNeeded = async (): Promise<void> => {
    const isRepeat = renewing !== undefined
    if (isRepeat) return
    drawn = await looks.end()
    if (drawn) throw new NeedlessError('another call filled the pool')
    mayHold = true
    // A command that is sent again finds its own token.
    const [holder, items, isUnfillable] = await Promise.all([
      redis.set(pool.lock, token, 'PX', FILLING_MS, 'NX', 'GET'),
      draw(redis, pool),
      redis.exists(pool.unfillable),
    ])
    drawn = items
    mayHold = holder === null || holder === token
    if (drawn || !mayHold || isUnfillable === 1) throw new NeedlessError('another call fills the pool, or none can')
    renewing = setInterval(() => {
      const extended = extendLock(redis, pool.lock, { tokens: [token], lifeMs: FILLING_MS })
      extended.catch((error) => log.debug({ err: error, pool: pool.key }, 'failed to extend the lock of a pool'))
    }, RENEW_EVERY_MS)
  }
  try {
    return await fill(deps, call, { ...pool, unlessFilled: { ensureNeeded, waitSignal: looks.found } })
  } catch (error) {
    drawn ??= await looks.end()
    if (drawn) return asExchange(call.rule, drawn)
    if (error instanceof NeedlessError) return 'again'
    throw error
  } finally {
    clearInterval(renewing)
    const released = mayHold ? releaseLock(redis, [pool.lock], [token]) : undefined
    released?.catch((error) => log.debug({ err: error, pool: pool.key }, 'failed to release the lock of a pool'))
  }
}

/**
 * Looks until it has drawn what another call brought, or `end` is called, which gives what was
 * drawn.
 */
function lookForItems(
  { redis, log }: PoolDeps,
  pool: Pool,
): { found: AbortSignal; end: () => Promise<unknown[] | undefined> } {
  const [found, ending] = [new AbortController(), new AbortController()]
  const look = async (): Promise<unknown[]> => {
    while (true) {
      await delay(LOOK_EVERY_MS, undefined, { signal: ending.signal })
      const drawn = await draw(redis, pool)
      if (!drawn) continue
      found.abort(new NeedlessError('another call filled the pool'))
      return drawn
    }
  }
  const drawing = look().catch((error) => {
    if (!ending.signal.aborted) log.debug({ err: error, pool: pool.key }, 'failed to look at a pool')
    return undefined
  })
  const end = async (): Promise<unknown[] | undefined> => {
    ending.abort()
    return await drawing
  }
  return { found: found.signal, end }
}

async function fill(
  { redis, log }: PoolDeps,
  { rule, parameters, send }: PoolCall,
  { key, unfillable, count, unlessFilled }: Pool & { unlessFilled: UnlessFilled },
): Promise<ClassifiedExchange | undefined> {
  const exchange = await send(rule.request(parameters), unlessFilled)
  // Refused or over its limit: so is this call.
  if (exchange.responseClass) return exchange
  // Fails open: the call has its answer, and a pool that was not filled costs another request.
  const remember = (storing: Promise<unknown>): Promise<unknown> =>
    storing.catch((error) => log.warn({ err: error, key }, 'failed to fill a pool'))
  const items = rule.items(exchange.answer.body)
  if (!items || items.length < count) {
    if (rule.tooFewItemsSeconds) await remember(redis.set(unfillable, 1, 'EX', rule.tooFewItemsSeconds))
    return undefined
  }
  const rest = items.slice(count).map((item) => JSON.stringify(item))
  if (rest.length > 0) await remember(storeItems.run(redis, [key], [rule.seconds, ...rest]))
  return asExchange(rule, items.slice(0, count))
}

async function draw(redis: RedisConnection, { key, count }: Pool): Promise<unknown[] | undefined> {
  const texts = (await takeItems.run(redis, [key], [count])) as string[]
  return texts.length === 0 ? undefined : texts.map((text) => JSON.parse(text))
}

function asExchange(rule: PrefetchRule<Parameters>, items: unknown[]): ClassifiedExchange {
  const body = rule.body(items)
  return { answer: { status: 200, headers: {}, body }, text: JSON.stringify(body), responseClass: undefined }
}
