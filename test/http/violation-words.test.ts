import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { sendError } from '../../src/http/error-answer.ts'

/** What a route with this body answers. */
async function answerTo(schema: TSchema, payload: object): Promise<string> {
  const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })
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
  const closed = Type.Object({}, { additionalProperties: false })
  assert.equal(await answerTo(closed, { email: 1 }), 'The body must have no member email.')
  assert.equal(await answerTo(closed, { '<b>': 1 }), 'The body has a member that is not known.')
})
