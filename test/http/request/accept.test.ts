import assert from 'node:assert/strict'
import { it } from 'node:test'
import { acceptsType, prefersType } from '../../../src/http/request/accept.ts'

it('a request asks for a media type if Accept names the type and names no other type above it', () => {
  const asks = (accept: string | undefined) => prefersType(accept, 'application/x', 'application/json')
  for (const accept of [
    'application/x',
    'application/json, application/x',
    'application/x;q=0.9, application/json;q=0.5',
    'APPLICATION/X ; charset=utf-8',
    'application/json;q=0, application/x;q=0.1',
  ])
    assert.equal(asks(accept), true, accept)
  for (const accept of [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/json, application/x;q=0.5',
    'application/x;q=0',
    'application/x; q=0.000, */*',
    'application/x;q=x',
    'application/xml',
  ])
    assert.equal(asks(accept), false, accept)
})

it('Accept allows a media type by its name or by a wildcard, unless it excludes the type', () => {
  for (const accept of [undefined, '*/*', 'text/*', 'text/x', 'a/b, text/x;q=0.1', 'text/*;q=0, text/x'])
    assert.equal(acceptsType(accept, 'text/x'), true, accept)
  for (const accept of ['', 'text/y', 'text/x;q=0', 'text/x;q=0.0, */*', 'text/*;q=0, */*', '*/*;q=0'])
    assert.equal(acceptsType(accept, 'text/x'), false, accept)
})
