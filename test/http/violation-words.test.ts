import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { closeBodies } from '../../src/http/closed-bodies.ts'
import { sendError } from '../../src/http/error-answer.ts'
import { compileSchemasOnUse } from '../../src/http/lazy-schemas.ts'

/** What a route with this body answers. */
async function answerTo(schema: TSchema, payload: object): Promise<string> {
  const app = Fastify()
  await compileSchemasOnUse(app)
  closeBodies(app)
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, 'https://gateway.example'))
  app.post('/', { schema: { body: schema } }, async () => ({}))
  return (await app.inject({ method: 'POST', url: '/', payload })).json().message
}

test('a request that does not fit its schema is told what would', async () => {
  const member = (schema: TSchema, value: unknown) => answerTo(Type.Object({ a: schema }), { a: value })
  for (const [schema, value, words] of [
    [Type.Enum(['live', 'test']), 'prod', 'Member a must be one of live, test.'],
    [Type.String({ format: 'email' }), 'x', 'Member a must be an email address, such as name@example.com.'],
    [Type.String({ format: 'date-time' }), '1', 'Member a must be a time with its zone, such as 2030-01-31T12:00:00Z.'],
    [Type.String({ minLength: 8 }), 'x', 'Member a must have at least 8 characters.'],
    [Type.String({ maxLength: 1 }), 'xx', 'Member a must have at most 1 character.'],
    [Type.Array(Type.String(), { minItems: 1 }), [], 'Member a must have at least 1 member.'],
    [Type.String({ pattern: '\\S' }), ' ', 'Member a must not be blank.'],
    [
      Type.String({ pattern: '^(day|api)(,(day|api))*$' }),
      'x',
      'Member a must be one or more of day, api, separated by commas.',
    ],
    [Type.String({ pattern: '^x$' }), 'y', 'Member a must match pattern "^x$".'],
    [Type.Integer(), 'x', 'Member a must be integer.'],
  ] as const) {
    assert.equal(await member(schema, value), words)
  }
})

test('a member that is not known is named, with the nearest one that is, or else all that are', async () => {
  const body = Type.Object({ environment: Type.Optional(Type.String()), expiresAt: Type.Optional(Type.String()) })
  assert.equal(await answerTo(body, { expires_at: 'x' }), 'Member expires_at is not known; did you mean expiresAt?')
  assert.equal(await answerTo(body, { enviroment: 'x' }), 'Member enviroment is not known; did you mean environment?')
  assert.equal(await answerTo(body, { mode: 'x' }), 'Member mode is not known; the members are environment, expiresAt.')
  assert.equal(
    await answerTo(body, { '<b>': 1 }),
    'The body has a member that is not known; the members are environment, expiresAt.',
  )
  assert.equal(await answerTo(Type.Object({}), { email: 1 }), 'Member email is not known.')
  const call = Type.Object({ api: Type.String(), parameters: Type.Optional(Type.Record(Type.String(), Type.Any())) })
  const calls = Type.Object({ calls: Type.Array(call) })
  assert.equal(
    await answerTo(calls, { calls: [{ api: 'weather', params: {} }] }),
    'Member calls.0.params is not known; did you mean parameters?',
  )
  assert.equal(
    await answerTo(calls, { calls: [{ api: 'weather', latitude: 1 }] }),
    'Member calls.0.latitude is not known; the members are api, parameters; those of the endpoint stand under parameters.',
  )
  assert.equal(await answerTo(call, { parameters: { any: 1 } }), 'Member api is required.')
})

test('a member that is missing and there under another name is told so', async () => {
  const body = Type.Object({ email: Type.String(), password: Type.String() })
  assert.equal(await answerTo(body, { emial: 'x', password: 'x' }), 'Member email is required; emial is not known.')
})

test('an object that takes any member, and says so, takes any', async () => {
  const message = Type.Object({ jsonrpc: Type.String() }, { additionalProperties: true })
  assert.equal(await answerTo(Type.Union([message, Type.Array(message)]), { jsonrpc: '2.0', id: 1 }), undefined)
})
