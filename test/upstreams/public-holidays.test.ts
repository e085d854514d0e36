import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import publicHolidays from '../../src/upstreams/public-holidays.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits } from '../support/upstream-call.ts'

const now = '2026-10-15T12:00:00Z'
const goodFriday = (types: string[], subdivisions: string[]) => ({
  date: '2027-03-26',
  name: 'Good Friday',
  countryCode: 'US',
  nationalHoliday: false,
  subdivisionCodes: subdivisions,
  holidayTypes: types,
})

test('the country comes before the year in the path, upper-cased', () => {
  assert.equal(
    addressOf(publicHolidays, '/holidays', { year: 2027, countryCode: 'pt' }, now),
    'https://nagerholidays.com/api/v4/Holidays/PT/2027',
  )
})

test('the segment Next has a capital N', () => {
  assert.equal(
    addressOf(publicHolidays, '/next', { countryCode: 'gb' }),
    'https://nagerholidays.com/api/v4/Holidays/GB/Next',
  )
})

test('a year outside the window of the upstream is refused before the call', () => {
  const ask = (year: number) => addressOf(publicHolidays, '/holidays', { year, countryCode: 'PT' }, now)
  assert.match(ask(2025), /\/PT\/2025$/)
  assert.match(ask(2031), /\/PT\/2031$/)
  for (const year of [2024, 2032, 0, -5]) {
    assert.throws(
      () => ask(year),
      (error) => error instanceof InvalidParameter && error.parameter === 'year',
    )
  }
})

test('a text that is no year or no country code is refused before the call', () => {
  const holidays = endpointAt(publicHolidays, '/holidays')
  assert.ok(fits(holidays, { year: 2027, countryCode: 'PT' }))
  for (const year of [2027.5, '2027', null]) assert.ok(!fits(holidays, { year, countryCode: 'PT' }))
  for (const countryCode of ['PRT', 'P', '', 'P1', '..']) assert.ok(!fits(holidays, { year: 2027, countryCode }))
})

test('204 with an empty body, for a known country without data, is an empty list', () => {
  assert.deepEqual(dataOf(publicHolidays, '/holidays', { status: 204 }), { holidays: [] })
  assert.deepEqual(dataOf(publicHolidays, '/next', { status: 204 }), { upcoming: [] })
})

test('200 with an empty body is UPSTREAM_INVALID_RESPONSE', () => {
  for (const path of ['/holidays', '/next']) {
    assert.equal(codeOf(publicHolidays, path, { status: 200 }), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('an unknown country code is UPSTREAM_NOT_FOUND', () => {
  const body = { title: 'Unknown country code', status: 404, detail: '...' }
  for (const path of ['/holidays', '/next']) {
    assert.equal(codeOf(publicHolidays, path, { status: 404, body }), 'UPSTREAM_NOT_FOUND')
  }
})

test('a year that the upstream refuses is UPSTREAM_ERROR, because years are checked before the request', () => {
  const body = { title: 'Bad Request', status: 400 }
  assert.equal(codeOf(publicHolidays, '/holidays', { status: 400, body }), 'UPSTREAM_ERROR')
})

test('the refusal of a User-Agent, a 403 of the network before the API, is UPSTREAM_ERROR', () => {
  assert.equal(codeOf(publicHolidays, '/next', { status: 403 }), 'UPSTREAM_ERROR')
})

test('a day can occur twice, with other subdivisions and types', () => {
  const body = [goodFriday(['Public'], ['US-CT']), goodFriday(['Optional'], ['US-TX'])]
  const { upcoming } = dataOf(publicHolidays, '/next', { body }) as { upcoming: { types: string[] }[] }
  assert.deepEqual(
    upcoming.map(({ types }) => types),
    [['Public'], ['Optional']],
  )
})

test('a day that the calendar does not have is no date', () => {
  const body = [{ date: '2027-02-28' }, { date: '2027-02-30' }, { date: '2027-2-1' }]
  const { holidays } = dataOf(publicHolidays, '/holidays', { body }) as { holidays: { date: unknown }[] }
  assert.deepEqual(
    holidays.map(({ date }) => date),
    ['2027-02-28', null, null],
  )
})

test('subdivisions are an empty list for a national day, whether the upstream sends null, an empty list or nothing', () => {
  const body = [{ date: '2027-01-01', subdivisionCodes: null }, { subdivisionCodes: [] }, {}]
  const { holidays } = dataOf(publicHolidays, '/holidays', { body }) as { holidays: { subdivision_codes: unknown }[] }
  assert.deepEqual(
    holidays.map((holiday) => holiday.subdivision_codes),
    [[], [], []],
  )
})

test('the local name, which the upstream no longer tells, is null', () => {
  const { upcoming } = dataOf(publicHolidays, '/next', { body: [goodFriday([], [])] }) as { upcoming: object[] }
  assert.deepEqual(upcoming, [
    {
      date: '2027-03-26',
      name: 'Good Friday',
      local_name: null,
      country_code: 'US',
      national: false,
      subdivision_codes: [],
      types: [],
    },
  ])
})

test('an item that is no object is left out', () => {
  const [holiday] = endpointAt(publicHolidays, '/next').example.response as object[]
  const { upcoming } = dataOf(publicHolidays, '/next', { body: [null, 'Easter', holiday, []] })
  assert.equal((upcoming as object[]).length, 1)
})

test('an object in place of the list is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(publicHolidays, '/next', { body: { holidays: [] } }), 'UPSTREAM_INVALID_RESPONSE')
})

test('the list of a year is stored for a day, and the list of the next holidays for six hours', () => {
  assert.equal(endpointAt(publicHolidays, '/holidays').cache?.seconds, 86_400)
  assert.equal(endpointAt(publicHolidays, '/next').cache?.seconds, 21_600)
})

test('an answer with a day whose subdivisions cannot be read is invalid, and the day is not shown as national', () => {
  for (const subdivisionCodes of ['US-CT', { states: ['US-CT'] }, [{ code: 'US-CT' }], [null], ['US-CT', 5]]) {
    const body = [
      { date: '2027-01-01', name: 'A' },
      { date: '2027-03-26', name: 'B', subdivisionCodes },
    ]
    for (const path of ['/holidays', '/next'])
      assert.equal(codeOf(publicHolidays, path, { body }), 'UPSTREAM_INVALID_RESPONSE', JSON.stringify(body))
  }
})

test('holidays are in the order of their dates', () => {
  const on = (date: string) => ({ ...goodFriday([], []), date })
  const body = [on('2027-12-25'), on('2027-01-01'), on('2027-03-26')]
  const { holidays } = dataOf(publicHolidays, '/holidays', { body })
  assert.deepEqual(
    (holidays as { date: string }[]).map(({ date }) => date),
    ['2027-01-01', '2027-03-26', '2027-12-25'],
  )
})
