import assert from 'node:assert/strict'
import { test } from 'node:test'
import airQuality from '../../src/upstreams/air-quality.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits, waitOf } from '../support/upstream-call.ts'

const current = endpointAt(airQuality, '/current')
const recorded = current.example.response as Record<string, unknown>
const refusal = (reason: string) => ({ reason, error: true })

test('the request names the eight variables of the data', () => {
  assert.equal(
    decodeURIComponent(addressOf(airQuality, '/current', { latitude: 52.52, longitude: 13.41 })),
    'https://air-quality-api.open-meteo.com/v1/air-quality?latitude=52.52&longitude=13.41&current=pm10,pm2_5,ozone,us_aqi,european_aqi,carbon_monoxide,nitrogen_dioxide,sulphur_dioxide',
  )
})

test("the position is the position of the model's grid cell, not the requested position", () => {
  const data = dataOf(airQuality, '/current', { body: recorded }, { latitude: 52.52, longitude: 13.41 })
  assert.equal(data.latitude, 52.549995)
  assert.equal(data.longitude, 13.450001)
})

test('the time is local to the time zone in the data, which is GMT unless the call requests a zone', () => {
  const body = { timezone: 'GMT', current: { time: '2024-02-21T15:00' } }
  const data = dataOf(airQuality, '/current', { body })
  assert.equal(data.time, '2024-02-21T15:00')
  assert.equal(data.timezone, 'GMT')
})

test('a variable is null if the model has no value for it, or if the answer leaves it out', () => {
  const data = dataOf(airQuality, '/current', { body: { current: { pm10: 9.7, ozone: null } } })
  assert.equal(data.pm10, 9.7)
  assert.equal(data.ozone, null)
  assert.equal(data.us_aqi, null)
  assert.deepEqual(Object.keys(data), Object.keys(current.example.data))
})

test('values are read from the block of values, not from the units of the same names', () => {
  const body = { current_units: { pm10: 'μg/m³', ozone: 54 }, current: { pm10: 36 } }
  const data = dataOf(airQuality, '/current', { body })
  assert.equal(data.pm10, 36)
  assert.equal(data.ozone, null)
})

test('an array, the answer for several places, is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(airQuality, '/current', { body: [recorded, recorded] }), 'UPSTREAM_INVALID_RESPONSE')
})

test('several places are refused before the call', () => {
  assert.ok(!fits(current, { latitude: '52.52,48.1', longitude: 13.41 }))
})

test('coordinates out of range are refused before the call, and coordinates at the bounds are not', () => {
  assert.ok(fits(current, { latitude: 90, longitude: -180 }))
  assert.ok(!fits(current, { latitude: 999, longitude: 0 }))
  assert.ok(!fits(current, { latitude: 0, longitude: 200 }))
})

test('an answer without values is UPSTREAM_INVALID_RESPONSE, not a success of nulls', () => {
  const { current: _, ...rest } = recorded
  assert.equal(codeOf(airQuality, '/current', { body: rest }), 'UPSTREAM_INVALID_RESPONSE')
})

test('refused coordinates are UPSTREAM_ERROR, because they are checked before the request', () => {
  for (const reason of [
    'Latitude must be in range of -90 to 90°. Given: 999.0.',
    'Longitude must be in range of -180 to 180°. Given: 200.0.',
  ]) {
    assert.equal(codeOf(airQuality, '/current', { status: 400, body: refusal(reason) }), 'UPSTREAM_ERROR')
  }
})

test('a 429 whose body is not JSON is UPSTREAM_RATE_LIMITED, with the wait that its header requests', () => {
  assert.equal(waitOf(airQuality, '/current', { status: 429, headers: { 'retry-after': '30' } }), 30_000)
})

test('an overload is UPSTREAM_ERROR', () => {
  const answer = { status: 503, body: refusal('The service is overloaded') }
  assert.equal(codeOf(airQuality, '/current', answer), 'UPSTREAM_ERROR')
})

test('an unknown path is UPSTREAM_ERROR', () => {
  assert.equal(codeOf(airQuality, '/current', { status: 404, body: refusal('Not Found') }), 'UPSTREAM_ERROR')
})

test('parameters that make a request count as several are reserved', () => {
  for (const name of ['hourly', 'past_days', 'forecast_days']) {
    assert.ok(airQuality.reservedParameters?.includes(name), name)
  }
})

test('at most two requests are under way at once', () => {
  assert.ok(airQuality.caps.concurrency <= 2)
})

test('places in the same grid cell share a cached answer', () => {
  const key = current.cache?.key
  assert.ok(key)
  assert.deepEqual(key({ latitude: 52.521, longitude: 13.409 }), key({ latitude: 52.52, longitude: 13.41 }))
  assert.notDeepEqual(key({ latitude: 52.53, longitude: 13.41 }), key({ latitude: 52.52, longitude: 13.41 }))
})
