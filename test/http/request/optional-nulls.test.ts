import assert from 'node:assert/strict'
import { it } from 'node:test'
import Type from 'typebox'
import { nullable } from '../../../src/catalog/json.ts'
import { removeOptionalNulls } from '../../../src/http/request/optional-nulls.ts'

const Body = Type.Object({
  name: Type.String(),
  mode: Type.Optional(Type.Enum(['a', 'b'])),
  label: Type.Optional(nullable(Type.String())),
  anything: Type.Optional(Type.Unknown()),
  items: Type.Optional(Type.Array(Type.Object({ ref: Type.Optional(Type.String()), api: Type.String() }))),
})

it('an optional member of a body that is null counts as left out, at any depth, unless null has a meaning there', () => {
  const body = {
    ...{ name: null, mode: null, label: null, anything: null, unknown: null },
    items: [{ ref: null, api: null }, { ref: 'mine', api: 'x' }, null],
  }
  removeOptionalNulls(Body, body)
  assert.deepEqual(body, {
    ...{ name: null, label: null, anything: null, unknown: null },
    items: [{ api: null }, { ref: 'mine', api: 'x' }, null],
  })
  const without = { name: 'n', items: null }
  removeOptionalNulls(Body, without)
  assert.deepEqual(without, { name: 'n' })
  for (const other of [null, 7, 'text', [null]]) removeOptionalNulls(Body, other)
})
