import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import currency from '../../src/upstreams/currency.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const context = { now: Date.parse('2026-09-13T09:00:00Z') }
const latest = currency.endpoints['/latest']
const pair = currency.endpoints['/pair']
assert.ok(latest && pair)

const usdToInr = { from: 'USD', to: 'INR' }

function answered(endpoint: typeof pair, parameters: Record<string, unknown>, status: number, body: unknown) {
  assert.ok(endpoint)
  const result = interpretAnswers({ upstream: currency, endpoint }, [{ status, headers: {}, body }], {
    parameters,
    context,
  })
  return 'data' in result ? result.data : result.responseClass.code
}

test('the recorded rates map to the recorded data', () => {
  assert.deepEqual(answered(latest, {}, 200, latest.example.response), latest.example.data)
  assert.deepEqual(latest.request({}, context), { path: '/v1/latest' })
})

test('the recorded pair maps to the recorded data', () => {
  assert.deepEqual(answered(pair, usdToInr, 200, pair.example.response), pair.example.data)
})

test('zero and a number below zero are no rates', () => {
  for (const rate of [0, -1.1]) {
    const rates = { INR: rate, JPY: 160 }
    assert.equal(answered(pair, usdToInr, 200, { base: 'USD', date: '2026-09-11', rates }), 'UPSTREAM_INVALID_RESPONSE')
    const table = answered(latest, {}, 200, { base: 'EUR', date: '2026-09-11', rates })
    assert.deepEqual(Object(table).rates, { JPY: 160 })
  }
})

test('a pair is requested with the documented parameters base and symbols', () => {
  assert.deepEqual(pair.request(usdToInr, context), {
    path: '/v1/latest',
    query: { base: 'USD', symbols: 'INR' },
  })
})

test('codes are accepted in lower case, and are in upper case in the data', () => {
  assert.deepEqual(pair.complete?.({ from: 'usd', to: 'iNr' }, context), usdToInr)
})

test('a currency against itself, which the upstream answers with 422, is refused before the request', () => {
  assert.throws(
    () => pair.complete?.({ from: 'usd', to: 'USD' }, context),
    (error) => error instanceof InvalidParameter && error.parameter === 'to',
  )
})

test('the date is the day of the rate, and not the requested date', () => {
  const sunday = { amount: 1, base: 'USD', date: '2026-09-11', rates: { INR: 95.56 } }
  assert.deepEqual(answered(pair, usdToInr, 200, sunday), { to: 'INR', date: '2026-09-11', from: 'USD', rate: 95.56 })
})

test('any set of currencies is in the data, and whole numbers too', () => {
  const body = { amount: 1, base: 'EUR', date: '2026-10-01', rates: { IDR: 18751, USD: 1.1057 } }
  assert.deepEqual(answered(latest, {}, 200, body), {
    base: 'EUR',
    date: '2026-10-01',
    rates: { IDR: 18751, USD: 1.1057 },
  })
})

test('a rate that is not a number is left out of the list', () => {
  const body = { base: 'EUR', date: '2026-10-01', rates: { USD: 1.1057, CHF: null, GBP: '2' } }
  assert.deepEqual(answered(latest, {}, 200, body), { base: 'EUR', date: '2026-10-01', rates: { USD: 1.1057 } })
})

test('an unsupported currency, a 404, is UPSTREAM_NOT_FOUND', () => {
  assert.equal(answered(pair, { from: 'USD', to: 'RUB' }, 404, { message: 'not found' }), 'UPSTREAM_NOT_FOUND')
})

test('the 404 of an unknown path, which has another shape, is UPSTREAM_ERROR', () => {
  assert.equal(answered(latest, {}, 404, { status: 404, message: 'not found' }), 'UPSTREAM_ERROR')
  assert.equal(answered(pair, usdToInr, 404, { status: 404, message: 'not found' }), 'UPSTREAM_ERROR')
})

test('a 422 for a bad pair or value is UPSTREAM_ERROR, because both are checked before the request', () => {
  for (const message of ['bad currency pair', 'invalid date', 'invalid currency: XYZ']) {
    assert.equal(answered(pair, usdToInr, 422, { message }), 'UPSTREAM_ERROR')
  }
})

test('a 503, which says that the request took too long, is UPSTREAM_ERROR', () => {
  assert.equal(answered(pair, usdToInr, 503, undefined), 'UPSTREAM_ERROR')
})

test('a success without the requested rate is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(answered(pair, usdToInr, 200, { base: 'USD', rates: { EUR: 0.9 } }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(pair, usdToInr, 200, {}), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(latest, {}, 200, []), 'UPSTREAM_INVALID_RESPONSE')
})

test('the parameter amount cannot be sent, because it would multiply the rate', () => {
  assert.ok(currency.reservedParameters?.includes('amount'))
})

test('rates are fresh for an hour and usable for a day when the upstream fails', () => {
  for (const endpoint of [latest, pair]) {
    assert.equal(endpoint.cache?.seconds, 3_600)
    assert.equal(endpoint.cache?.staleIfErrorSeconds, 86_400)
  }
})

test('a rate of another base or for another amount, and a table without rates, are invalid responses', () => {
  const pairOf = (more: object) =>
    answered(pair, usdToInr, 200, { amount: 1, base: 'USD', date: '2026-09-11', rates: { INR: 95.56 }, ...more })
  for (const more of [{}, { amount: undefined }, { amount: '1' }])
    assert.deepEqual(pairOf(more), { from: 'USD', to: 'INR', rate: 95.56, date: '2026-09-11' })
  for (const more of [{ base: 'EUR' }, { base: 'usd' }, { amount: 10 }, { amount: 0 }])
    assert.equal(pairOf(more), 'UPSTREAM_INVALID_RESPONSE', JSON.stringify(more))
  for (const rates of [{}, { value: { USD: 1 } }, { USD: '1.1' }, [1.1]])
    assert.equal(answered(latest, {}, 200, { base: 'EUR', date: '2026-09-11', rates }), 'UPSTREAM_INVALID_RESPONSE')
})
