import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { it } from 'node:test'
import Fastify from 'fastify'
import { hookAnswers } from '../src/request-hooks.ts'

it('an answer to HEAD reads nothing of the stream that answers GET, and ends it', async () => {
  const app = Fastify()
  hookAnswers(app, {
    isDraining: false,
    config: { accounts: { isOauthOn: false }, http: { baseUrl: 'http://gateway' } },
  })
  let read = 0
  async function* lines() {
    for (; read < 1_000; read += 1) yield 'line\n'
  }
  let closed: Promise<unknown> | undefined
  app.get('/export', async (_request, reply) => {
    const stream = Readable.from(lines())
    closed = once(stream, 'close')
    return reply.type('application/x-ndjson').send(stream)
  })
  const { statusCode, headers, body } = await app.inject({ method: 'HEAD', url: '/export' })
  assert.deepEqual([statusCode, headers['content-type'], body], [200, 'application/x-ndjson', ''])
  await closed
  assert.equal(read, 0)
  assert.equal((await app.inject('/export')).body.length, 5_000)
  await app.close()
})
