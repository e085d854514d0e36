import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import sunriseSunset from '../../src/upstreams/sunrise-sunset.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

// Already the next day in Tokyo, still the day before in Honolulu.
const context = { now: Date.parse('2026-10-02T09:30:00Z') }
const lateEvening = { now: Date.parse('2026-10-01T23:30:00Z') }
const times = sunriseSunset.endpoints['/times']
assert.ok(times)

const tokyo = { lat: 35.68, lng: 139.69, date: '2026-08-04', tzid: 'Asia/Tokyo' }
const recorded = times.example.response as { results: Record<string, unknown>; status: string; tzid: string }

function answered(status: number, body: unknown) {
  assert.ok(times)
  const result = interpretAnswers({ upstream: sunriseSunset, endpoint: times }, [{ status, headers: {}, body }], {
    parameters: tokyo,
    context,
  })
  return 'data' in result ? result.data : result.responseClass.code
}

function refuses(parameters: Record<string, unknown>, name: string) {
  assert.throws(
    () => times?.complete?.(parameters, context),
    (error) => error instanceof InvalidParameter && error.parameter === name,
    JSON.stringify(parameters),
  )
}

test('the recorded times map to the recorded data, with their time zone', () => {
  assert.deepEqual(answered(200, recorded), times.example.data)
})

test('formatted=0 is always sent, because it decides the form of times and day length', () => {
  assert.deepEqual(times.request(tokyo, context), {
    path: '/json',
    query: { lat: 35.68, lng: 139.69, date: '2026-08-04', formatted: 0, tzid: 'Asia/Tokyo' },
  })
})

test('no time zone is sent when none is requested', () => {
  const request = times.request({ lat: 1, lng: 2, date: '2026-08-04' }, context)
  assert.ok(!Array.isArray(request))
  assert.equal(request.query?.tzid, undefined)
})

test('without a date, today in UTC is sent', () => {
  assert.deepEqual(times.complete?.({ lat: 1, lng: 2 }, lateEvening), { lat: 1, lng: 2, date: '2026-10-01' })
})

test('without a date, today in the requested time zone is sent', () => {
  const dayIn = (tzid: string, { now }: { now: number }) => times.complete?.({ lat: 1, lng: 2, tzid }, { now })?.date
  assert.equal(dayIn('Asia/Tokyo', lateEvening), '2026-10-02')
  assert.equal(dayIn('Pacific/Honolulu', context), '2026-10-01')
})

test('a date of the call is sent unchanged', () => {
  assert.deepEqual(times.complete?.(tokyo, context), tokyo)
})

test('relative words are not dates', () => {
  for (const date of ['today', 'tomorrow', '2026-8-4', '+1 week']) {
    assert.ok(!Value.Check(times.parameters, { ...tokyo, date }), date)
  }
  assert.ok(Value.Check(times.parameters, tokyo))
})

test('days that the calendar does not have are refused', () => {
  for (const date of ['2026-02-29', '2026-13-01', '2026-00-10', '2026-04-31']) refuses({ ...tokyo, date }, 'date')
  assert.doesNotThrow(() => times.complete?.({ ...tokyo, date: '2028-02-29' }, context))
})

test('names that are not time zones are refused', () => {
  for (const tzid of ['Mars/Olympus', 'Asia/Tokio', 'x']) refuses({ ...tokyo, tzid }, 'tzid')
  assert.doesNotThrow(() => times.complete?.({ ...tokyo, tzid: 'UTC' }, context))
  assert.doesNotThrow(() => times.complete?.({ ...tokyo, tzid: 'Asia/Kolkata' }, context))
})

test('a time zone in another letter case shares a stored answer', () => {
  assert.deepEqual(times.complete?.({ ...tokyo, tzid: 'asia/TOKYO' }, context), tokyo)
})

test('an offset is not a time zone name', () => {
  assert.ok(!Value.Check(times.parameters, { ...tokyo, tzid: '+01:00' }))
})

test('coordinates that are not on the earth are refused, because the upstream accepts them', () => {
  assert.ok(!Value.Check(times.parameters, { ...tokyo, lat: 999 }))
  assert.ok(!Value.Check(times.parameters, { ...tokyo, lng: -180.1 }))
})

test('in polar day and night, times that do not happen are null, and solar noon is real', () => {
  const never = '1970-01-01T00:00:01+00:00'
  const data = answered(200, {
    results: {
      sunrise: never,
      sunset: never,
      solar_noon: '2026-06-21T11:02:00+00:00',
      day_length: 0,
      civil_twilight_begin: never,
      civil_twilight_end: never,
      nautical_twilight_begin: '1970-01-01T00:00:00+00:00',
      nautical_twilight_end: never,
      astronomical_twilight_begin: never,
      astronomical_twilight_end: never,
    },
    status: 'OK',
    tzid: 'UTC',
  })
  assert.deepEqual(data, {
    status: 'OK',
    sunrise: null,
    sunset: null,
    solar_noon: '2026-06-21T11:02:00+00:00',
    day_length: 0,
    civil_twilight_begin: null,
    civil_twilight_end: null,
    nautical_twilight_begin: null,
    nautical_twilight_end: null,
    astronomical_twilight_begin: null,
    astronomical_twilight_end: null,
    tzid: 'UTC',
  })
})

test('a single twilight that does not happen is null, also with an offset of another zone', () => {
  const results = { ...recorded.results, astronomical_twilight_end: '1970-01-01T09:00:01+09:00' }
  const data = answered(200, { ...recorded, results })
  assert.ok(typeof data === 'object')
  assert.equal(data.astronomical_twilight_end, null)
  assert.equal(data.sunset, '2026-08-04T18:44:45+09:00')
})

test('a time that stands for an event that does not happen is null, in whatever zone it is written', () => {
  for (const never of [
    '1970-01-01T00:00:01+01:00',
    '1970-01-01T00:00:00-05:00',
    '1969-12-31T19:00:01-05:00',
    '-0001-11-30T00:00:00+00:00',
    '0000-00-00T00:00:00+00:00',
  ]) {
    const data = answered(200, { ...recorded, results: { ...recorded.results, sunrise: never } })
    assert.ok(typeof data === 'object')
    assert.equal(data.sunrise, null, never)
  }
})

test('real times of 1 January 1970 are kept', () => {
  const results = { ...recorded.results, sunrise: '1970-01-01T07:26:10+00:00' }
  const data = answered(200, { ...recorded, results })
  assert.ok(typeof data === 'object')
  assert.equal(data.sunrise, '1970-01-01T07:26:10+00:00')
})

test('the time zone is null if the answer does not name it', () => {
  const data = answered(200, { results: recorded.results, status: 'OK' })
  assert.ok(typeof data === 'object')
  assert.equal(data.tzid, null)
})

test('a missing coordinate or an unreadable date, a 400, is UPSTREAM_ERROR, because both are checked', () => {
  assert.equal(answered(400, { results: '', status: 'INVALID_REQUEST' }), 'UPSTREAM_ERROR')
  assert.equal(answered(400, { results: '', status: 'INVALID_DATE' }), 'UPSTREAM_ERROR')
})

test('the same messages with status 200 are UPSTREAM_ERROR too', () => {
  assert.equal(answered(200, { results: '', status: 'INVALID_REQUEST' }), 'UPSTREAM_ERROR')
  assert.equal(answered(200, { results: '', status: 'INVALID_DATE' }), 'UPSTREAM_ERROR')
})

test('the answer to an unknown time zone, 200 with times in UTC, is UPSTREAM_REJECTED, and no success', () => {
  const body = { results: recorded.results, status: 'INVALID_TZID', tzid: 'UTC' }
  assert.equal(answered(200, body), 'UPSTREAM_REJECTED')
})

test('UNKNOWN_ERROR is UPSTREAM_ERROR whatever the status', () => {
  for (const status of [200, 400, 500]) {
    assert.equal(answered(status, { results: '', status: 'UNKNOWN_ERROR' }), 'UPSTREAM_ERROR')
  }
})

test('an empty text for results or an unknown word is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(answered(200, { results: '', status: 'OK' }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(200, { results: recorded.results, status: 'MAYBE' }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(200, {}), 'UPSTREAM_INVALID_RESPONSE')
})

test('an answer is stored for a day, by date, zone and coordinates of three decimals', () => {
  assert.equal(times.cache?.seconds, 86_400)
  const key = times.cache?.key
  assert.ok(key)
  assert.deepEqual(key({ ...tokyo, lat: 35.68012 }), key(tokyo))
  assert.notDeepEqual(key({ ...tokyo, date: '2026-08-05' }), key(tokyo))
  assert.notDeepEqual(key({ ...tokyo, tzid: 'UTC' }), key(tokyo))
  assert.notDeepEqual(key({ ...tokyo, lng: 139.7 }), key(tokyo))
})

test('the required attribution names the site', () => {
  assert.match(sunriseSunset.terms.attribution ?? '', /https:\/\/sunrise-sunset\.org/)
})
