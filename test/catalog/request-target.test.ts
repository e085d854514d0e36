import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decimal, isUnderBase, requestTarget } from '../../src/catalog/request-target.ts'
import type { EncodedPath } from '../../src/catalog/upstream-request.ts'

/** What the URL Standard makes of it, one parameter after the other. */
function byStandard(baseUrl: string, path: string, parameters: [string, string][]) {
  const url = new URL(baseUrl + path)
  for (const [name, value] of parameters) url.searchParams.append(name, value)
  return { origin: url.origin, path: url.pathname + url.search }
}

const BASES = ['https://api.example', 'https://api.example/v1', 'http://127.0.0.1:8080/u/weather']

test('the target of a request is what the URL Standard makes of base, path and parameters, whatever they hold', () => {
  const piece = fc.constantFrom('a', 'Z9', '.', '..', '...', '%2e', '%2E.', '%20', '%', '-_~', ':@', "!$&'()*+,;=")
  const hostile = fc.constantFrom(' ', '"', '<', '\\', '^', '`', '{', '|', 'é', '\t', '\u0000', '#x', '?y=1')
  const segment = fc.array(fc.oneof({ weight: 4, arbitrary: piece }, { weight: 1, arbitrary: hostile }), {
    maxLength: 3,
  })
  const path = fc
    .array(segment, { minLength: 1, maxLength: 4 })
    .map((segments) => segments.map((parts) => `/${parts.join('')}`).join(''))
  const parameters = fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })), {
    maxLength: 3,
  })
  fc.assert(
    fc.property(fc.constantFrom(...BASES), path, parameters, (baseUrl, itsPath, extra) => {
      assert.deepEqual(
        requestTarget(baseUrl, { path: itsPath as EncodedPath }, extra),
        byStandard(baseUrl, itsPath, extra),
      )
    }),
    { numRuns: 2_000 },
  )
})

test("a request's own query stands before the caller's further parameters, and a number has no exponent", () => {
  const query = { lat: 5e-7, far: 1e21, none: undefined, q: 'a b&c' }
  assert.deepEqual(requestTarget('https://api.example/v1', { path: '/x' as EncodedPath, query }, [['lat', '1']]), {
    origin: 'https://api.example',
    path: '/v1/x?lat=0.0000005&far=1000000000000000000000&q=a+b%26c&lat=1',
  })
})

test('a list in one parameter has its separator as it is, and its items are encoded', () => {
  const query = { ids: { items: ['a,b', 'c d'], separator: ',' }, q: 'x' }
  for (const [path, written] of [
    ['/x', '/v1/x?ids=a%2Cb,c+d&q=x'],
    ['/.x', '/v1/.x?q=x&ids=a%2Cb,c+d'],
  ] as const)
    assert.equal(requestTarget('https://api.example/v1', { path: path as EncodedPath, query }, []).path, written)
  const { path } = requestTarget('https://api.example', { path: '/.x' as EncodedPath, query: { ids: query.ids } }, [])
  assert.equal(path, '/.x?ids=a%2Cb,c+d')
})

test('a path with .. that leaves the base address is refused', () => {
  const base = 'https://api.example/v1'
  const isUnder = (path: string) => isUnderBase(base, requestTarget(base, { path: path as EncodedPath }, []))
  assert.ok(isUnder('/x'))
  assert.ok(isUnder('/x/..y'))
  for (const path of ['/..', '/../v2', '/x/../../v2', '/%2e%2e/v2', '/..\\v2']) assert.ok(!isUnder(path), path)
  assert.ok(!isUnderBase(base, { origin: 'https://api.example', path: '/v1' }))
  assert.ok(!isUnderBase(base, { origin: 'https://api.example', path: '/v10/x' }))
  assert.ok(!isUnderBase(base, { origin: 'http://api.example', path: '/v1/x' }))
})

test('a number in a request loses no digit, however small it is', () => {
  assert.equal(decimal(1.2345678901234e-12), '0.0000000000012345678901234')
  assert.equal(decimal(-1e-25), '-0.0000000000000000000000001')
  const anyNumber = fc.double({ noNaN: true, noDefaultInfinity: true })
  fc.assert(
    fc.property(anyNumber, (value) => {
      const text = decimal(value)
      assert.match(text, /^-?\d+(?:\.\d+)?$/)
      assert.equal(Number(text), value + 0)
    }),
  )
})
