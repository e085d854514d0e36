import Fastify, { type FastifyInstance } from 'fastify'
import type { Redis } from 'ioredis'

/** The arguments of the process of a peer. */
export interface FixtureOptions {
  redisUrl: string
  upstreamUrl: string
}

/**
 * The keys of the fixtures: a key without a reachable limit, a key whose limit is used up, and a
 * key that they do not know.
 */
export const FIXTURE_KEYS = { live: 'fixture-key', limited: 'limited-key', unknown: 'unknown-key' }

/** A fixed window of a minute, as the usual plugins count it in Redis. */
const COUNT = `
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end
return {used, redis.call('PTTL', KEYS[1])}
`
const PER_MINUTE = 100_000_000

export function fixtureOptions(): FixtureOptions {
  return JSON.parse(process.argv[2] ?? '')
}

/**
 * An HTTP server that checks a key and a rate limit in Redis before every request, as both peers
 * do.
 */
export async function createFixtureApp(redis: Redis): Promise<FastifyInstance> {
  redis.defineCommand('countCall', { numberOfKeys: 1, lua: COUNT })
  await redis.hset(`key:${FIXTURE_KEYS.live}`, { account: 'a', tier: 'pro', perMinute: PER_MINUTE })
  await redis.hset(`key:${FIXTURE_KEYS.limited}`, { account: 'b', tier: 'pro', perMinute: 0 })
  const app = Fastify({ logger: false })
  app.addHook('onRequest', async (request, reply) => {
    const key = await redis.hgetall(`key:${String(request.headers['x-api-key'])}`)
    if (!key.account) return reply.status(401).send({ error: 'unauthorized' })
    const count = Reflect.get(redis, 'countCall') as (key: string) => Promise<[number, number]>
    const [used, leftMs] = await count.call(redis, `limit:${key.account}`)
    if (used > Number(key.perMinute)) return reply.status(429).send({ error: 'too many requests' })
    reply
      .header('x-ratelimit-remaining', Number(key.perMinute) - used)
      .header('x-ratelimit-reset', Math.ceil(leftMs / 1_000))
  })
  return app
}

/** Listens, and sends the port to the parent process. It ends when the parent ends. */
export async function serveFixture(app: FastifyInstance): Promise<void> {
  process.on('disconnect', () => process.exit(0))
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  process.send?.({ listening: Number(new URL(address).port) })
}
