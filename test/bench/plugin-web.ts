import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { FIXTURE_KEYS, fixtureOptions, serveFixture } from './fixture-admission.ts'

/**
 * A proxy without a queue, put together from plugins: keys in Redis, @fastify/rate-limit,
 * @fastify/http-proxy.
 */
const { redisUrl, upstreamUrl } = fixtureOptions()
const redis = new Redis(redisUrl, { enableAutoPipelining: true })
await redis.hset(`key:${FIXTURE_KEYS.live}`, { account: 'a', perMinute: 100_000_000 })
await redis.hset(`key:${FIXTURE_KEYS.limited}`, { account: 'b', perMinute: 0 })
const app = Fastify({ logger: false })
app.decorateRequest('account', '')
app.addHook('onRequest', async (request, reply) => {
  const key = await redis.hgetall(`key:${String(request.headers['x-api-key'])}`)
  if (!key.account) return reply.status(401).send({ error: 'unauthorized' })
  if (key.perMinute === '0') return reply.status(429).send({ error: 'too many requests' })
  request.headers['x-account'] = key.account
})
await app.register(rateLimit, {
  max: 100_000_000,
  timeWindow: 60_000,
  redis,
  keyGenerator: (request) => String(request.headers['x-account']),
})
await app.register(httpProxy, { upstream: upstreamUrl, undici: { connections: 256 } })
await serveFixture(app)
