import assert from 'node:assert/strict'
import { test } from 'node:test'
import developmentIndicators from '../../src/upstreams/development-indicators.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits } from '../support/upstream-call.ts'

const paths = ['/gdp', '/population']
const head = { page: 1, pages: 1, per_page: 50, total: 2, lastupdated: '2026-07-13' }
const row = (date: string, value: unknown) => ({
  indicator: { id: 'SP.POP.TOTL', value: 'Population, total' },
  country: { id: 'US', value: 'United States' },
  countryiso3code: 'USA',
  date,
  value,
})
const failure = (id: string) => [{ message: [{ id, key: 'Invalid value', value: 'The provided … is not valid' }] }]

test('JSON and the most recent published value are requested', () => {
  assert.equal(
    addressOf(developmentIndicators, '/gdp', { country: 'MX' }),
    'https://api.worldbank.org/v2/country/MX/indicator/NY.GDP.MKTP.CD?format=json&mrnev=1',
  )
  assert.equal(
    addressOf(developmentIndicators, '/population', { country: 'US' }),
    'https://api.worldbank.org/v2/country/US/indicator/SP.POP.TOTL?format=json&mrnev=1',
  )
})

test('the country code is upper-cased', () => {
  for (const path of paths) {
    assert.match(addressOf(developmentIndicators, path, { country: 'mx' }), /\/v2\/country\/MX\/indicator\//)
  }
})

test('"all", lists, aggregates and three-letter codes are refused before the call', () => {
  for (const path of paths) {
    const endpoint = endpointAt(developmentIndicators, path)
    assert.ok(fits(endpoint, { country: 'us' }))
    for (const country of ['all', 'us;de', 'USA', '1W', 'u', '', 'u/']) assert.ok(!fits(endpoint, { country }), country)
    assert.ok(!fits(endpoint, {}))
  }
})

test('a failure that comes with status 200 for an unknown code is UPSTREAM_NOT_FOUND', () => {
  for (const path of paths) {
    assert.equal(codeOf(developmentIndicators, path, { body: failure('120') }), 'UPSTREAM_NOT_FOUND')
  }
})

test('any other failure that comes with status 200 is UPSTREAM_ERROR', () => {
  for (const path of paths) {
    assert.equal(codeOf(developmentIndicators, path, { body: failure('105') }), 'UPSTREAM_ERROR')
  }
})

test('a failure whose code cannot be read is UPSTREAM_ERROR', () => {
  for (const message of [[], [null], ['120x'], [{ id: { toString: 1 } }]]) {
    assert.equal(codeOf(developmentIndicators, '/gdp', { body: [{ message }] }), 'UPSTREAM_ERROR')
  }
})

test('a failure that has a status of its own is judged by the status', () => {
  assert.equal(codeOf(developmentIndicators, '/gdp', { status: 400, body: failure('105') }), 'UPSTREAM_ERROR')
  assert.equal(codeOf(developmentIndicators, '/gdp', { status: 503 }), 'UPSTREAM_ERROR')
})

test('a valid call without rows is UPSTREAM_NOT_FOUND', () => {
  for (const body of [[head, null], [{ ...head, total: 0 }], [head, []]]) {
    assert.equal(codeOf(developmentIndicators, '/gdp', { body }), 'UPSTREAM_NOT_FOUND')
  }
})

test('rows of which none has a value yet are UPSTREAM_NOT_FOUND', () => {
  const body = [head, [row('2025', null), row('2024', null)]]
  assert.equal(codeOf(developmentIndicators, '/population', { body }), 'UPSTREAM_NOT_FOUND')
})

test('rows that cannot be read are UPSTREAM_INVALID_RESPONSE, and not UPSTREAM_NOT_FOUND', () => {
  for (const body of [[head], [head, {}], [head, [5]], [head, [row('2025', '336755052')]], [], {}, 'x']) {
    assert.equal(codeOf(developmentIndicators, '/population', { body }), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('the XML of the default format is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(developmentIndicators, '/gdp', { body: undefined }), 'UPSTREAM_INVALID_RESPONSE')
})

test('the newest year is skipped while its value is not published', () => {
  const body = [head, [row('2025', null), row('2024', 340110988), row('2023', 336755052)]]
  const data = dataOf(developmentIndicators, '/population', { body })
  assert.equal(data.year, 2024)
  assert.equal(data.population, 340110988)
})

test('an answer with a single row, as mrnev gives it, is enough', () => {
  const body = [{ ...head, total: 1 }, [row('2024', 340110988)]]
  assert.equal(dataOf(developmentIndicators, '/population', { body }).population, 340110988)
})

test('the year is a number, though the upstream writes text', () => {
  assert.equal(dataOf(developmentIndicators, '/gdp', { body: [head, [row('2023', 1.5)]] }).year, 2023)
})

test('metadata of older answers, without source and with counts as text, are read', () => {
  const body = [{ page: 1, per_page: '50', total: 1 }, [row('2019', 328239523)]]
  const data = dataOf(developmentIndicators, '/population', { body })
  assert.equal(data.population, 328239523)
  assert.equal(data.last_updated, null)
})

test('the data say when the figures were last updated', () => {
  assert.equal(dataOf(developmentIndicators, '/gdp', { body: [head, [row('2023', 1)]] }).last_updated, '2026-07-13')
})

test('an attempt may take longer than the usual ten seconds', () => {
  assert.ok((developmentIndicators.attemptTimeoutMs ?? 0) > 10_000)
})

test('the newest figure is answered in whatever order the rows come', () => {
  const body = [head, [row('2022', 1), row('2024', 3), row('2025', null), row('2023', 2)]]
  assert.deepEqual(dataOf(developmentIndicators, '/population', { body }).year, 2024)
})
