import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import geocoding from '../../src/upstreams/geocoding.ts'
import { classifyResponse, interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const context = { now: Date.parse('2026-10-01T12:00:00Z') }
const search = geocoding.endpoints['/search']
const reverse = geocoding.endpoints['/reverse']
assert.ok(search && reverse)

function interpreted(
  endpoint: typeof search,
  { status = 200, headers = {}, body }: { status?: number; headers?: Record<string, string>; body?: unknown },
) {
  assert.ok(endpoint)
  return interpretAnswers({ upstream: geocoding, endpoint }, [{ status, headers, body }], {
    parameters: withDefaults(endpoint, endpoint.example.parameters),
    context,
  })
}

function answered(endpoint: typeof search, answer: Parameters<typeof interpreted>[1]) {
  const result = interpreted(endpoint, answer)
  return 'data' in result ? result.data : result.responseClass.code
}

/** The only result of a search that found `item`. */
function found(item: Record<string, unknown>): Record<string, unknown> {
  const data = answered(search, { body: [item] })
  assert.ok(typeof data === 'object' && Array.isArray(data.results) && data.results.length === 1)
  return data.results[0]
}

test('the recorded search maps to the recorded data', () => {
  assert.deepEqual(answered(search, { body: search.example.response }), search.example.data)
})

test('the recorded address, an old answer with numbers as texts, maps to the recorded data', () => {
  assert.deepEqual(answered(reverse, { body: reverse.example.response }), reverse.example.data)
})

test('a search asks for JSON, address parts and English names', () => {
  assert.deepEqual(search.request(withDefaults(search, { q: 'Batumi', limit: 1 }), context), {
    path: '/search',
    query: { q: 'Batumi', format: 'jsonv2', addressdetails: 1, limit: 1, 'accept-language': 'en' },
  })
})

test('a reverse look-up asks for JSON, address parts and English names', () => {
  assert.deepEqual(reverse.request(withDefaults(reverse, { lat: -34.44076, lon: -58.70521 }), context), {
    path: '/reverse',
    query: { lat: -34.44076, lon: -58.70521, format: 'jsonv2', addressdetails: 1, 'accept-language': 'en' },
  })
})

test('no match is a success with an empty list', () => {
  assert.deepEqual(answered(search, { body: [] }), { results: [] })
})

test('coordinates, bounding box and ids written as texts become numbers', () => {
  const result = found({
    lat: '41.5',
    lon: '-0.25',
    importance: '0.1',
    osm_id: '280940520',
    boundingbox: ['1', '2', '3', '4'],
  })
  assert.equal(result.lat, 41.5)
  assert.equal(result.lon, -0.25)
  assert.equal(result.importance, 0.1)
  assert.equal(result.osm_id, 280940520)
  assert.deepEqual(result.bounding_box, { south: 1, north: 2, west: 3, east: 4 })
})

test('an id that no number can hold is null, and not the id of another object', () => {
  assert.equal(found({ name: 'A', osm_id: '9007199254740993' }).osm_id, null)
})

test('an empty name is replaced by the first part of the display name', () => {
  assert.equal(found({ name: '', display_name: '45, Long Street, Town' }).name, '45')
  assert.equal(found({ name: 'Town Hall', display_name: '45, Long Street, Town' }).name, 'Town Hall')
  assert.equal(found({}).name, null)
})

test('the main tag is read from class if category is missing', () => {
  assert.equal(found({ class: 'place' }).category, 'place')
  assert.equal(found({ class: 'place', category: 'boundary' }).category, 'boundary')
})

test('a result without address or bounding box has null for them', () => {
  const result = found({ display_name: 'Somewhere' })
  assert.equal(result.address, null)
  assert.equal(result.bounding_box, null)
  assert.equal(result.country, null)
  assert.equal(result.country_code, null)
})

test('the city is the first of city, town, village, municipality, hamlet, suburb and county', () => {
  const kinds = ['city', 'town', 'village', 'municipality', 'hamlet', 'suburb', 'county']
  while (kinds.length > 0) {
    const address = Object.fromEntries(kinds.map((kind) => [kind, `a ${kind}`]))
    const data = answered(reverse, { body: { display_name: 'x', address } })
    assert.ok(typeof data === 'object')
    assert.equal(data.city, `a ${kinds[0]}`)
    kinds.shift()
  }
  const data = answered(reverse, { body: { display_name: 'x', address: { state: 'y' } } })
  assert.ok(typeof data === 'object')
  assert.equal(data.city, null)
  assert.equal(data.postcode, null)
})

test('nothing at the coordinates, 200 with an error text, is UPSTREAM_NOT_FOUND', () => {
  assert.equal(answered(reverse, { body: { error: 'Unable to geocode' } }), 'UPSTREAM_NOT_FOUND')
  for (const error of ['Gone', { code: 500, message: 'x' }])
    assert.equal(
      answered(reverse, { body: { error } }),
      'UPSTREAM_ERROR',
      'another error is no place without an address',
    )
})

test('a 400 with an error object is UPSTREAM_REJECTED for a text, and UPSTREAM_ERROR for coordinates that were checked', () => {
  const body = { error: { code: 400, message: "Parameter 'lat' missing." } }
  assert.equal(answered(search, { status: 400, body }), 'UPSTREAM_REJECTED')
  assert.equal(answered(reverse, { status: 400, body }), 'UPSTREAM_ERROR')
})

test('429 is UPSTREAM_RATE_LIMITED with the time it states', () => {
  const result = interpreted(search, { status: 429, headers: { 'retry-after': '7' } })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(result.responseClass.retryAfterMs, 7_000)
})

test('403 is UPSTREAM_RATE_LIMITED, because there is no key that it could refuse', () => {
  const result = interpreted(search, { status: 403, headers: { 'content-type': 'text/html' } })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(result.responseClass.retryAfterMs, 60_000)
})

test('403 with a stated time keeps that time', () => {
  const result = interpreted(search, { status: 403, headers: { 'retry-after': '120' } })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(result.responseClass.retryAfterMs, 120_000)
})

test('a web page with status 200 is UPSTREAM_RATE_LIMITED', () => {
  assert.equal(answered(search, { headers: { 'content-type': 'text/html; charset=utf-8' } }), 'UPSTREAM_RATE_LIMITED')
})

test('another unreadable body with status 200 is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(answered(search, { headers: { 'content-type': 'application/json' } }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(search, { body: {} }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(reverse, { body: {} }), 'UPSTREAM_INVALID_RESPONSE')
})

test('a search that took too long, a 503, is UPSTREAM_ERROR', () => {
  assert.equal(answered(search, { status: 503, headers: { 'content-type': 'text/plain' } }), 'UPSTREAM_ERROR')
})

test('an answer to a probe with status 200 whose body has a status other than 0 is UPSTREAM_ERROR', () => {
  const probed = (body: unknown) =>
    classifyResponse({ upstream: geocoding, endpoint: undefined }, { status: 200, headers: {}, body })?.code
  assert.equal(probed({ status: 0, message: 'OK' }), undefined)
  assert.equal(probed({ status: 700, message: 'Database connection failed' }), 'UPSTREAM_ERROR')
})

test('the probe stays far below 4 scheduled requests a minute', () => {
  assert.ok(geocoding.probe.everySeconds >= 180)
})

test('answers are stored for a week, and answers without a match for a day', () => {
  assert.equal(search.cache?.seconds, 604_800)
  assert.equal(reverse.cache?.seconds, 604_800)
  assert.equal(reverse.cache?.notFoundSeconds, 86_400)
})

test('the same place in another letter case or a metre away shares a stored answer', () => {
  assert.deepEqual(search.cache?.key?.({ q: 'BATUMI', limit: 5 }), search.cache?.key?.({ q: 'Batumi', limit: 5 }))
  assert.notDeepEqual(search.cache?.key?.({ q: 'Batumi', limit: 1 }), search.cache?.key?.({ q: 'Batumi', limit: 5 }))
  assert.deepEqual(
    reverse.cache?.key?.({ lat: 1.000001, lon: 2 }),
    reverse.cache?.key?.({ lat: 1.000002, lon: 2.000001 }),
  )
})

test('a query is trimmed and its white space folded, and a blank one is refused', () => {
  assert.deepEqual(search.complete?.(withDefaults(search, { q: '  New   York ', limit: 5 }), context), {
    q: 'New York',
    limit: 5,
  })
  assert.throws(
    () => search.complete?.(withDefaults(search, { q: '  ' }), context),
    (error) => error instanceof InvalidParameter && error.parameter === 'q',
  )
})

test('limit is 1 to 10, and coordinates that are not on the earth are refused', () => {
  const searches = (limit: unknown) => Value.Check(search.parameters, { q: 'x', limit })
  assert.deepEqual([0, 1, 10, 11, 2.5].map(searches), [false, true, true, false, false])
  const reverses = (lat: unknown, lon: unknown) => Value.Check(reverse.parameters, { lat, lon })
  assert.ok(reverses(-90, 180))
  assert.ok(!reverses(91.3, 0))
  assert.ok(!reverses(0, -180.5))
})
