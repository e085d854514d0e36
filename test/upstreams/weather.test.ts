import assert from 'node:assert/strict'
import { test } from 'node:test'
import airQuality from '../../src/upstreams/air-quality.ts'
import weather from '../../src/upstreams/weather.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits, interpreted, waitOf } from '../support/upstream-call.ts'

const current = endpointAt(weather, '/current')
const recorded = current.example.response as Record<string, unknown>
const refusal = (reason: string) => ({ error: true, reason })

test('the request is for the older block of the data, in default units', () => {
  assert.equal(
    addressOf(weather, '/current', { latitude: 40.71, longitude: -74.01 }),
    'https://api.open-meteo.com/v1/forecast?latitude=40.71&longitude=-74.01&current_weather=true',
  )
})

test("the position is the position of the model's grid cell, not the requested position", () => {
  const data = dataOf(weather, '/current', { body: recorded }, { latitude: 40.71, longitude: -74.01 })
  assert.equal(data.latitude, 40.710335)
  assert.equal(data.longitude, -73.99308)
})

test('the time has no zone, and the data have the offset', () => {
  const block = { time: '2026-09-29T00:00' }
  const data = dataOf(weather, '/current', { body: { utc_offset_seconds: -14400, current_weather: block } })
  assert.equal(data.time, '2026-09-29T00:00')
  assert.equal(data.utc_offset_seconds, -14400)
})

test('an answer in other units than the gateway names is UPSTREAM_INVALID_RESPONSE', () => {
  for (const [upstream, block, units] of [
    [weather, 'current_weather', { temperature: '°F' }],
    [airQuality, 'current', { pm10: 'mg/m³' }],
  ] as const) {
    const answer = (stated: object) => ({ body: { [block]: { time: 'T' }, [`${block}_units`]: stated } })
    assert.equal(codeOf(upstream, '/current', answer(units)), 'UPSTREAM_INVALID_RESPONSE')
    assert.equal(dataOf(upstream, '/current', answer({ temperature: '°C', pm10: 'µg/m³', other: 'x' })).time, 'T')
  }
})

test('is_day and weathercode are numbers', () => {
  const data = dataOf(weather, '/current', { body: { current_weather: { is_day: 1, weathercode: 61 } } })
  assert.equal(data.is_day, 1)
  assert.equal(data.weathercode, 61)
})

test('a value that no model covers is null, and so is a value that the answer leaves out', () => {
  const data = dataOf(weather, '/current', { body: { current_weather: { temperature: null, is_day: null } } })
  assert.equal(data.temperature_c, null)
  assert.equal(data.is_day, null)
  assert.equal(data.winddirection, null)
  assert.deepEqual(Object.keys(data), Object.keys(current.example.data))
})

test('an array, the answer for several places, is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(weather, '/current', { body: [recorded, recorded] }), 'UPSTREAM_INVALID_RESPONSE')
})

test('several places are refused before the call', () => {
  assert.ok(fits(current, { latitude: 40.71, longitude: -74.01 }))
  assert.ok(!fits(current, { latitude: '40.71,50', longitude: -74.01 }))
})

test('coordinates out of range are refused before the call, and coordinates at the bounds are not', () => {
  assert.ok(fits(current, { latitude: -90, longitude: 180 }))
  assert.ok(!fits(current, { latitude: 90.01, longitude: 0 }))
  assert.ok(!fits(current, { latitude: 0, longitude: -180.01 }))
  assert.ok(!fits(current, { latitude: 0 }))
})

test('a 200 that breaks off before its JSON ends is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(weather, '/current', { status: 200, body: undefined }), 'UPSTREAM_INVALID_RESPONSE')
})

test('an answer without the block is UPSTREAM_INVALID_RESPONSE, and not a success with only nulls', () => {
  const { current_weather: _, ...rest } = recorded
  assert.equal(codeOf(weather, '/current', { body: rest }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(codeOf(weather, '/current', { body: refusal('Something went wrong.') }), 'UPSTREAM_INVALID_RESPONSE')
})

test('refused coordinates are UPSTREAM_ERROR, because they are checked before the request', () => {
  for (const reason of [
    'Latitude must be in range of -90 to 90°. Given: 200.0.',
    'Longitude must be in range of -180 to 180°. Given: 200.0.',
    "Parameter 'latitude' and 'longitude' must have the same number of elements",
  ]) {
    assert.equal(codeOf(weather, '/current', { status: 400, body: refusal(reason) }), 'UPSTREAM_ERROR')
  }
})

for (const [name, upstream] of Object.entries({ weather, 'air-quality': airQuality })) {
  test(`the reason of ${name} tells how long a limit lasts, an hour at the longest`, () => {
    const limited = (reason: string) => waitOf(upstream, '/current', { status: 429, body: refusal(reason) })
    assert.equal(limited('Minutely API request limit exceeded. Please try again in one minute.'), 60_000)
    assert.equal(limited('Hourly API request limit exceeded. Please try again in the next hour.'), 3_600_000)
    assert.equal(limited('Daily API request limit exceeded. Please try again tomorrow.'), 3_600_000)
    assert.equal(limited('Too many concurrent requests'), undefined)
  })
}

test('an overload and an internal error are UPSTREAM_ERROR', () => {
  assert.equal(
    codeOf(weather, '/current', { status: 503, body: refusal('The service is overloaded') }),
    'UPSTREAM_ERROR',
  )
  assert.equal(codeOf(weather, '/current', { status: 500, body: refusal('Something went wrong.') }), 'UPSTREAM_ERROR')
})

test('a redirect to the host for paying users is blocked', () => {
  const headers = { location: 'https://customer-api.open-meteo.com/v1/forecast' }
  assert.equal(codeOf(weather, '/current', { status: 302, headers }), 'UPSTREAM_REDIRECT_BLOCKED')
})

test('a key goes to the host for paying users', () => {
  assert.equal(weather.credential?.required, false)
  assert.equal(weather.credential?.baseUrl, 'https://customer-api.open-meteo.com')
})

test('fewer requests are under way at once than the source refuses', () => {
  assert.ok(weather.caps.concurrency <= 5)
})

test('units that would change the meaning of the data are reserved', () => {
  for (const name of ['temperature_unit', 'wind_speed_unit']) assert.ok(weather.reservedParameters?.includes(name))
})

test('places in the same grid cell share a cached answer', () => {
  const key = current.cache?.key
  assert.ok(key)
  assert.deepEqual(key({ latitude: 40.7101, longitude: -74.0099 }), key({ latitude: 40.71, longitude: -74.01 }))
  assert.notDeepEqual(key({ latitude: 40.72, longitude: -74.01 }), key({ latitude: 40.71, longitude: -74.01 }))
})

test('the recorded answer gives the recorded data', () => {
  assert.deepEqual(interpreted(weather, '/current', { body: recorded }), { data: current.example.data })
})
