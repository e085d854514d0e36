import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pythonType } from '../../src/clients/python-types.ts'
import { typescriptType } from '../../src/clients/typescript-types.ts'

// Documents of own APIs have such lists, and one file holds the types of all APIs.
test('a list of values that is empty is a type that both languages can read', () => {
  const schema = { type: 'object', properties: { kind: { enum: [] }, all: { type: 'array', items: { enum: [] } } } }
  assert.equal(typescriptType(schema), '{\n  kind?: never\n  all?: never[]\n}')
  assert.equal(pythonType({ enum: [] }, 'Kind', []), 'Any')
})
