import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { compileSchemas, compileSchemasOnUse } from '../../../src/http/request/lazy-schemas.ts'

const answer = { type: 'object', properties: { said: { type: 'string' } } }
const greeting = { type: 'object', required: ['name'], properties: { name: { type: 'string', default: 'x' } } }

test('a route checks its body and writes its answer by schemas that its first request compiles', async () => {
  const app = Fastify()
  await compileSchemasOnUse(app)
  app.post('/', { schema: { body: greeting, response: { 200: answer } } }, async ({ body }) => ({
    said: (body as { name: string }).name,
    more: 'is not in the schema',
  }))
  const post = (payload: object) => app.inject({ method: 'POST', url: '/', payload })
  for (let count = 0; count < 2; count += 1) {
    assert.deepEqual((await post({ name: 'a' })).json(), { said: 'a' })
    const refused = await post({ name: 1 })
    assert.equal(refused.statusCode, 400)
    assert.equal(refused.json().message, 'body/name must be string')
    assert.deepEqual((await post({})).json(), { said: 'x' })
  }
  await app.close()
})

test('a schema that cannot be compiled is found when all are compiled', async () => {
  const app = Fastify()
  await compileSchemasOnUse(app)
  app.post('/', { schema: { body: { type: 'no such type' } } }, async () => undefined)
  await app.ready()
  await assert.rejects(compileSchemas(app), /type must be/)
  await app.close()
})
