import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifySchema, type InjectOptions } from 'fastify'
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { sendError } from '../../../src/http/answer/error-answer.ts'
import { closeBodies } from '../../../src/http/request/closed-bodies.ts'
import { compileSchemasOnUse } from '../../../src/http/request/lazy-schemas.ts'

/** What a route with this body answers. */
async function answerTo(schema: TSchema, payload: unknown): Promise<string> {
  return (await refusalOf({ body: schema }, { method: 'POST', url: '/', payload: JSON.stringify(payload) })).message
}

async function refusalOf(
  schema: FastifySchema,
  { payload, ...request }: InjectOptions & { payload?: string },
): Promise<{ message: string; hint: string }> {
  const app = Fastify()
  await compileSchemasOnUse(app)
  closeBodies(app)
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, 'https://gateway.example'))
  app.route({ method: schema.body ? 'POST' : 'GET', url: '/', schema, handler: async () => ({}) })
  const headers = payload === undefined ? {} : { 'content-type': 'application/json' }
  return (await app.inject({ ...request, headers, ...(payload === undefined ? {} : { payload }) })).json()
}

test('the refusal of a request that does not match its schema says what would match', async () => {
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
    [Type.String({ pattern: '^x$', description: 'x alone' }), 'y', 'Member a must be as described: x alone.'],
    [Type.Integer(), 'x', 'Member a must be a whole number.'],
    [Type.Number(), 'x', 'Member a must be a number.'],
    [Type.Boolean(), 'x', 'Member a must be true or false.'],
    [Type.String(), 1, 'Member a must be a string.'],
    [Type.Array(Type.String()), 'x', 'Member a must be a list.'],
    [Type.Record(Type.String(), Type.Any()), [], 'Member a must be a JSON object.'],
    [Type.Object({ b: Type.Any(), c: Type.Any() }), [], 'Member a must be a JSON object; the members are b, c.'],
    [Type.Integer({ minimum: 1 }), 0, 'Member a must be at least 1.'],
    [Type.Integer({ maximum: 9 }), 10, 'Member a must be at most 9.'],
  ] as const) {
    assert.equal(await member(schema, value), words)
  }
})

test('the refusal of a body that is missing or no object says what it must be, and how to send it', async () => {
  const body = Type.Object({ email: Type.String(), password: Type.String() })
  for (const payload of [undefined, '[]', 'null', '"x"']) {
    const { message, hint } = await refusalOf({ body }, { method: 'POST', url: '/', ...(payload && { payload }) })
    assert.equal(message, 'The body must be a JSON object; the members are email, password.', payload)
    assert.equal(hint, 'Send a JSON object as the body, with Content-Type: application/json.', payload)
  }
})

test('the refusal of a query parameter that is sent twice says to send it once', async () => {
  const querystring = Type.Object({ q: Type.Optional(Type.String()) })
  const { message } = await refusalOf({ querystring }, { method: 'GET', url: '/?q=a&q=b' })
  assert.equal(message, 'Parameter q must be given once.')
})

test('the refusal of an unknown member contains its name and the nearest known member, or otherwise all known members', async () => {
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
    'Member calls.0.latitude is not known; the members are api, parameters; the parameters of the endpoint belong in the member parameters.',
  )
  assert.equal(await answerTo(call, { parameters: { any: 1 } }), 'Member api is required.')
})

test('the refusal of a missing member names the member that was sent in its place', async () => {
  const body = Type.Object({ email: Type.String(), password: Type.String() })
  assert.equal(await answerTo(body, { emial: 'x', password: 'x' }), 'Member email is required; emial is not known.')
})

test('an object whose schema allows any member accepts any member', async () => {
  const message = Type.Object({ jsonrpc: Type.String() }, { additionalProperties: true })
  assert.equal(await answerTo(Type.Union([message, Type.Array(message)]), { jsonrpc: '2.0', id: 1 }), undefined)
})
