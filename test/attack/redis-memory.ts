import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, send, sendPatiently, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** Length of the upstream's answer, bytes. Its text does not compress well. */
const BODY_BYTES = 6_000_000

/**
 * Megabytes that an account on the Free plan may keep in Redis, and megabytes that Redis may need
 * for other reasons.
 */
const KEPT_MB = 16
const ELSE_MB = 24

/** Free room of Redis at the start, megabytes. */
const ROOM_MB = 64

/** Accounts fill Redis with the results of asynchronous calls to an API with large answers. */
export const redisMemory: Scenario = {
  name: 'redis-memory',
  claim: `accounts with large stored results fill at most ${KEPT_MB} MB each, and never the memory of Redis that calls of others need`,
  slugs: ['prediction-markets'],
  environment: { UPSTREAM_PREDICTION_MARKETS_CAPS: 'concurrency=10,100000/60' },
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    const noise = randomBytes((BODY_BYTES * 3) / 4).toString('base64')
    upstream?.play('prediction-markets', () => [{ id: '1', question: 'q', noise }])
    const redis = openOperatorRedis(gateway)
    const usedMb = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]) / 1e6
    const [, ceiling = '0'] = (await redis.config('GET', 'maxmemory')) as string[]
    const atStart = await usedMb()
    await redis.config('SET', 'maxmemory', Math.round((atStart + ROOM_MB) * 1e6))
    try {
      const other = await signUp(gateway)
      const first = await flood(gateway, await signUp(gateway))
      const ofOne = (await usedMb()) - atStart
      const callsOfOthers = [await callOf(gateway, other)]
      const outcomes = [...first]
      // More accounts than Redis has room for.
      const end = performance.now() + seconds * 2_000
      for (let count = 1; count < 8 && performance.now() < end; count += 1) {
        outcomes.push(...(await flood(gateway, await signUp(gateway))))
        callsOfOthers.push(await callOf(gateway, other))
      }
      const ofAll = (await usedMb()) - atStart
      const served = callsOfOthers.filter((status) => status === 200).length
      const counts = countsOf(outcomes)
      return {
        isPassed:
          ofOne < KEPT_MB + ELSE_MB && ofAll < ROOM_MB && served === callsOfOthers.length && counts.kept !== undefined,
        figures: {
          'large calls': outcomes.length,
          ...counts,
          'MB of one account': Math.round(ofOne),
          'MB of all': Math.round(ofAll),
          [`of ${ROOM_MB} MB; calls of others`]: callsOfOthers.length,
          served,
        },
      }
    } finally {
      await redis.config('SET', 'maxmemory', ceiling)
      redis.disconnect()
    }
  },
}

/** How often each outcome occurred. */
function countsOf(outcomes: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** Makes as many calls as the account may have at once, and returns their outcomes. */
async function flood(gateway: Gateway, account: Account): Promise<string[]> {
  return await Promise.all([1, 2, 3, 4, 5].map((limit) => store(gateway, account, limit)))
}

const TRIES_MAX = 5

/**
 * Makes an asynchronous call. Makes it again if a busy machine kept the gateway from Redis for
 * longer than it waits.
 *
 * @returns `kept`, or the code of the refusal
 */
async function store(gateway: Gateway, { live }: Account, limit: number): Promise<string> {
  const headers = { prefer: 'respond-async', 'x-gateway-response': 'raw' }
  for (let tries = 1; ; tries += 1) {
    const path = `/v1/call/prediction-markets/markets?limit=${limit}`
    const { status, body, headers: answered } = await send(gateway, path, { key: live, headers })
    const outcome = status === 202 ? await resultOf(`${gateway.url}${answered.get('location')}`, live) : body.error.code
    if (outcome !== 'DEPENDENCY_UNAVAILABLE' || tries === TRIES_MAX) return outcome
  }
}

async function resultOf(url: string, live: string): Promise<string> {
  for (;;) {
    const response = await fetch(url, { headers: { 'x-api-key': live } })
    if (response.status === 202) {
      await response.body?.cancel()
      await delay(100)
      continue
    }
    if (!response.ok) return ((await response.json()) as { error: { code: string } }).error.code
    await response.body?.cancel()
    return 'kept'
  }
}

/** Makes a call of another account while Redis keeps the results, and returns its status. */
async function callOf(gateway: Gateway, { test }: Account): Promise<number> {
  return (await sendPatiently(gateway, '/v1/call/currency/latest', { key: test })).status
}
