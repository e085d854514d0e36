import { Redis } from 'ioredis'
import { Agent } from 'undici'
import { createFixtureApp, fixtureOptions, serveFixture } from './fixture-admission.ts'

/** The base of all ratios: a proxy without a queue, with keys and limits in Redis. */
const { redisUrl, upstreamUrl } = fixtureOptions()
const app = await createFixtureApp(new Redis(redisUrl))
const client = new Agent({ connections: 256 })

app.get('/*', async (request, reply) => {
  const { statusCode, headers, body } = await client.request({
    origin: upstreamUrl,
    path: request.url,
    method: 'GET',
    headers: { accept: 'application/json' },
  })
  reply.status(statusCode).header('content-type', headers['content-type'] ?? 'application/json')
  if (headers['content-length'] !== undefined) reply.header('content-length', headers['content-length'])
  return reply.send(body)
})
await serveFixture(app)
