import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dateIn, isCalendarDate, momentOf, zoneNamed } from '../../src/catalog/calendar.ts'
import { InvalidParameter, singleSpaced, trimmed } from '../../src/catalog/parameter-values.ts'
import { path } from '../../src/catalog/upstream-request.ts'

test('a date exists in the calendar and is written YYYY-MM-DD', () => {
  for (const date of ['2026-10-15', '2024-02-29', '0001-01-01', '9999-12-31']) assert.ok(isCalendarDate(date), date)
  const others = [
    '2026-02-29',
    '2026-02-30',
    '2026-13-01',
    '2026-00-10',
    '2026-1-5',
    '2026-10',
    '20261015',
    '',
    'today',
  ]
  for (const date of [...others, '2026-10-15T00:00', '+002026-10-15']) assert.ok(!isCalendarDate(date), date)
})

test('a moment is on a day that the calendar has', () => {
  assert.deepEqual(momentOf('2028-02-29'), new Date('2028-02-29T00:00:00Z'))
  assert.deepEqual(momentOf('2026-11-28T01:00:00+02:00'), new Date('2026-11-27T23:00:00Z'))
  for (const text of ['2026-02-30', '2026-02-29T00:00:00Z', '2026-11-28T25:00:00Z', '28 Nov 2026', 'soon', ''])
    assert.equal(momentOf(text), undefined, text)
})

test('a time zone is a name, in any letter case, and no offset', () => {
  for (const name of ['Europe/Amsterdam', 'UTC', 'Asia/Kolkata', 'Etc/GMT+5']) assert.equal(zoneNamed(name), name)
  assert.equal(zoneNamed('europe/amsterdam'), 'Europe/Amsterdam')
  // Links, which the runtime takes and does not list.
  for (const name of ['Asia/Kolkata', 'Europe/Kyiv', 'US/Pacific', 'America/Argentina/Buenos_Aires', 'GMT', 'W-SU'])
    assert.equal(zoneNamed(name.toUpperCase()), name)
  // The runtime takes these, and the zone database does not have them.
  const ofRuntime = ['PST', 'IST', 'AST', 'SystemV/PST8', 'US/Pacific-New']
  for (const name of [...ofRuntime, '', '+01:00', '-05', 'Europe/Nowhere', 'Amsterdam', 'Europe/Amsterdam ']) {
    assert.equal(zoneNamed(name), undefined, name)
  }
})

test('the date is the date in the zone', () => {
  const time = Date.parse('2026-01-01T03:00:00Z')
  assert.equal(dateIn('UTC')(time), '2026-01-01')
  assert.equal(dateIn('America/New_York')(time), '2025-12-31')
  assert.equal(dateIn('Asia/Tokyo')(Date.parse('2026-02-28T15:00:00Z')), '2026-03-01')
})

test('a text loses the blanks around it, and is refused when nothing is left or half a character is in it', () => {
  assert.equal(trimmed('q', ' \n two  words\t'), 'two  words')
  assert.equal(singleSpaced('q', ' two \n words '), 'two words')
  for (const value of ['', ' ', '\u00a0\n', 'a\ud800', '\udc00']) {
    assert.throws(
      () => trimmed('q', value),
      (error) => error instanceof InvalidParameter && error.parameter === 'q',
    )
  }
})

test('a value in a path is one segment', () => {
  assert.equal(path`/a/${'b/c?d#e%2e'}/${7}.json`, '/a/b%2Fc%3Fd%23e%252e/7.json')
  for (const value of ['', '.', '..', '\ud800']) assert.throws(() => path`/a/${value}`, InvalidParameter)
})
