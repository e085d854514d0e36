import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { failed, invalid, notFound, overLimit, rejected } from '../../src/catalog/response-class.ts'
import countries from '../../src/upstreams/countries.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const name = countries.endpoints['/name'] as Endpoint
const info = countries.endpoints['/info'] as Endpoint
const code = countries.endpoints['/code'] as Endpoint
const context = { now: 0 }

function interpret(endpoint: Endpoint, body: unknown, parameters: Record<string, unknown> = {}, status = 200) {
  const all = { ...endpoint.example.parameters, ...parameters }
  return interpretAnswers({ upstream: countries, endpoint }, [{ status, headers: {}, body }], {
    parameters: all,
    context,
  })
}

/** The name of the country that /info chooses. */
function chosen(wanted: string, records: unknown[]) {
  const result = interpret(info, records, { name: wanted })
  assert.ok('data' in result)
  return result.data.name
}

function interpretCountry(record: Record<string, unknown>) {
  const result = interpret(code, { name: 'Somewhere', ...record })
  assert.ok('data' in result)
  const [country] = result.data.results as Record<string, unknown>[]
  assert.ok(country)
  return country
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [name, info, code]) {
    assert.deepEqual(interpret(endpoint, endpoint.example.response), { data: endpoint.example.data })
  }
})

test('a search that finds nothing is an empty list; an unknown country or code is UPSTREAM_NOT_FOUND', () => {
  assert.deepEqual(interpret(name, { error: 'Country not found' }, {}, 404), { data: { count: 0, results: [] } })
  for (const endpoint of [info, code]) {
    assert.deepEqual(interpret(endpoint, { error: 'Country not found' }, {}, 404), { responseClass: notFound() })
  }
})

test('an empty list means no match for a search, and UPSTREAM_NOT_FOUND for a name or a code', () => {
  assert.deepEqual(interpret(name, []), { data: { count: 0, results: [] } })
  assert.deepEqual(interpret(info, []), { responseClass: notFound() })
  assert.deepEqual(interpret(code, []), { responseClass: notFound() })
})

test('a 400 is UPSTREAM_REJECTED and a 429 is UPSTREAM_RATE_LIMITED', () => {
  assert.deepEqual(interpret(name, { error: 'bad parameter' }, {}, 400), { responseClass: rejected() })
  const body = { error: 'Too Many Requests', message: 'Rate limit reached' }
  assert.deepEqual(interpret(name, body, {}, 429), { responseClass: overLimit() })
})

test('the answer of a retired version, 200 with success false, is UPSTREAM_ERROR', () => {
  const body = { success: false, data: null, errors: [{ message: 'This API version has been deprecated.' }] }
  for (const endpoint of [name, info, code]) assert.deepEqual(interpret(endpoint, body), { responseClass: failed() })
})

test('a 200 that holds no country is UPSTREAM_INVALID_RESPONSE', () => {
  for (const endpoint of [name, info, code]) {
    for (const body of [{}, null, 'Finland', { message: 'ok' }]) {
      assert.deepEqual(interpret(endpoint, body), { responseClass: invalid() })
    }
  }
})

test('the answer to a code is also read if it is a list with a single country', () => {
  assert.deepEqual(interpret(code, [code.example.response]), { data: code.example.data })
})

test('the country with exactly this name is chosen before countries whose name contains it', () => {
  const niger = [{ name: 'Nigeria' }, { name: 'Niger' }]
  assert.equal(chosen('niger', niger), 'Niger')
  const guinea = [{ name: 'Equatorial Guinea' }, { name: 'Guinea-Bissau' }, { name: 'Guinea' }]
  assert.equal(chosen('Guinea', guinea), 'Guinea')
})

test('an alternative spelling comes before a name that begins with the text', () => {
  const records = [{ name: 'Suomigard' }, { name: 'Finland', altSpellings: ['FI', 'Suomi'] }]
  assert.equal(chosen('suomi', records), 'Finland')
})

test('of several countries whose name begins with the text the most populous is chosen', () => {
  const records = [
    { name: 'Isle of United States' },
    { name: 'United States Minor Outlying Islands', population: 300 },
    { name: 'United States of America', population: 329_484_123 },
  ]
  assert.equal(chosen('United States', records), 'United States of America')
})

test('a part of a name finds its country if no other country has it, and finds no country otherwise', () => {
  assert.equal(chosen('finl', [{ name: 'Finland' }]), 'Finland')
  const records = [{ name: 'Åland Islands' }, { name: 'Finland' }]
  assert.deepEqual(interpret(info, records, { name: 'lan' }), { responseClass: notFound() })
})

test('a common name that the long ISO name does not contain is requested by its code', () => {
  for (const endpoint of [name, info]) {
    assert.deepEqual(endpoint.request({ name: 'South Korea' }, context), { path: '/alpha/KR' })
    assert.deepEqual(endpoint.request({ name: 'UK' }, context), { path: '/alpha/GB' })
    assert.deepEqual(endpoint.request({ name: 'Ukraine' }, context), { path: '/name/Ukraine' })
  }
  const record = { name: 'Korea (Republic of)', region: 'Asia', capital: 'Seoul', population: 51_780_579 }
  assert.deepEqual(interpret(info, record, { name: 'South Korea' }), { data: record })
})

test('a capital that is empty or missing is null', () => {
  assert.equal(interpretCountry({ capital: '' }).capital, null)
  assert.equal(interpretCountry({}).capital, null)
})

test('the flag is the address in flags.svg, whatever the member flag has', () => {
  const flags = { svg: 'https://countries.dev/flags/af.svg' }
  assert.equal(interpretCountry({ flag: '🇦🇫', flags }).flag_url, 'https://countries.dev/flags/af.svg')
  assert.equal(interpretCountry({ flag: '🇦🇫' }).flag_url, null)
})

test('lists that the answer leaves out are empty', () => {
  const { latlng, languages, currencies, timezones, borders } = interpretCountry({})
  assert.deepEqual([latlng, languages, currencies, timezones, borders], [[], [], [], [], []])
})

test('an answer whose languages, currencies or borders cannot be read is invalid, and not a country without them', () => {
  for (const list of [
    { languages: { eng: 'English' } },
    { languages: [{ label: 'English' }] },
    { currencies: { EUR: { name: 'Euro' } } },
    { currencies: [{ iso: 'EUR', label: 'Euro' }] },
    { borders: 'SWE' },
  ]) {
    const result = interpret(code, { name: 'Finland', alpha2Code: 'FI', ...list }, { code: 'FI' })
    assert.ok('responseClass' in result, JSON.stringify(list))
    assert.equal(result.responseClass.code, 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('both coordinates are null if the answer has only one, because it could be read in place of the other', () => {
  for (const latlng of [
    [64, null],
    [null, 26],
    ['64', 26],
  ])
    assert.deepEqual(interpretCountry({ latlng }).latlng, [], JSON.stringify(latlng))
})

test('a record whose name is not a string is an invalid answer, and does not mean that the country was not found', () => {
  const result = interpret(info, [{ name: { common: 'Finland' }, alpha2Code: 'FI' }], { name: 'Finland' })
  assert.ok('responseClass' in result)
  assert.equal(result.responseClass.code, 'UPSTREAM_INVALID_RESPONSE')
})

test('a name is sent trimmed, without accents and as a single path segment', () => {
  assert.deepEqual(name.complete?.({ name: '  Côte  d’Ivoire ' }, context), { name: 'Cote d’Ivoire' })
  assert.deepEqual(name.request({ name: 'a/b c' }, context), { path: '/name/a%2Fb%20c' })
  assert.throws(() => info.complete?.({ name: '   ' }, context), InvalidParameter)
})

test('a code has two or three letters and is sent in upper case', () => {
  const accepts = Compile(code.parameters)
  for (const value of ['fi', 'FIN']) assert.ok(accepts.Check({ code: value }))
  for (const value of ['f', 'finl', 'f1', '246', '']) assert.ok(!accepts.Check({ code: value }), value)
  assert.deepEqual(code.complete?.({ code: 'fin' }, context), { code: 'FIN' })
})

test('a caller cannot leave out parts of the answer with fields', () => {
  assert.ok(countries.reservedParameters?.includes('fields'))
})

test('names in another letter case share a stored answer', () => {
  assert.deepEqual(name.cache?.key?.({ name: 'INDIA' }), name.cache?.key?.({ name: 'India' }))
})

// In quadratic time this would take minutes.
test('a name full of brackets is read in linear time', () => {
  const records = [{ name: `${'('.repeat(200_000)}\n` }, { name: 'Freedonia (Republic)', population: 1 }]
  assert.equal(chosen('Freedonia', records), 'Freedonia (Republic)')
})
