import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import timezone from '../../src/upstreams/timezone.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const context = { now: Date.parse('2026-03-18T13:02:26Z') }
const current = timezone.endpoints['/current']
assert.ok(current)

const amsterdam = { timezone: 'Europe/Amsterdam' }
const recorded = current.example.response as Record<string, unknown>

function answered(status: number, body: unknown) {
  assert.ok(current)
  const result = interpretAnswers({ upstream: timezone, endpoint: current }, [{ status, headers: {}, body }], {
    parameters: amsterdam,
    context,
  })
  return 'data' in result ? result.data : result.responseClass.code
}

function completed(name: string) {
  return current?.complete?.({ timezone: name }, context)?.timezone
}

test('the recorded clock maps to the recorded data', () => {
  assert.deepEqual(answered(200, recorded), current.example.data)
})

test('the zone is requested as timeZone', () => {
  assert.deepEqual(current.request(amsterdam, context), {
    path: '/api/time/current/zone',
    query: { timeZone: 'Europe/Amsterdam' },
  })
})

test('the US date becomes an ISO date, built from year, month and day', () => {
  const data = answered(200, { ...recorded, year: 2026, month: 1, day: 2, date: '01/02/2026' })
  assert.ok(typeof data === 'object')
  assert.equal(data.date, '2026-01-02')
})

test('a clock without the numbers of its date has the date of its local time', () => {
  const dateOf = (clock: Record<string, unknown>) => {
    const data = answered(200, { ...recorded, month: undefined, ...clock })
    return typeof data === 'object' ? data.date : data
  }
  assert.equal(dateOf({}), '2026-03-18')
  assert.equal(dateOf({ dateTime: '03/18/2026 14:02' }), null)
})

test('the local time keeps its seven digits and gets no offset', () => {
  const data = answered(200, recorded)
  assert.ok(typeof data === 'object')
  assert.equal(data.datetime, '2026-03-18T14:02:26.3823348')
  assert.equal(data.time, '14:02')
})

test('daylight saving time in force is shown', () => {
  const data = answered(200, { ...recorded, dstActive: true })
  assert.ok(typeof data === 'object')
  assert.equal(data.dst_active, true)
})

test('names that are not time zones are refused before they are sent', () => {
  for (const name of ['Mars/Olympus', 'Europe/Amsterdamn', 'CET+1', 'x']) {
    assert.throws(
      () => completed(name),
      (error) => error instanceof InvalidParameter && error.parameter === 'timezone',
      name,
    )
  }
})

test('zones, links to zones, UTC and Etc names are sent unchanged', () => {
  for (const name of ['Europe/Amsterdam', 'Asia/Kolkata', 'Asia/Calcutta', 'UTC', 'Etc/GMT+5', 'US/Eastern']) {
    assert.equal(completed(name), name)
  }
})

test('a zone in another letter case is sent in its usual spelling', () => {
  assert.equal(completed('europe/amsterdam'), 'Europe/Amsterdam')
  assert.equal(completed('AMERICA/NEW_YORK'), 'America/New_York')
  assert.equal(completed('utc'), 'UTC')
})

test('an offset is no name of a zone', () => {
  assert.ok(!Value.Check(current.parameters, { timezone: '+01:00' }))
  assert.ok(Value.Check(current.parameters, { timezone: 'America/Port-au-Prince' }))
})

test('a 400 is UPSTREAM_ERROR, because the zone is checked before the request', () => {
  assert.equal(answered(400, null), 'UPSTREAM_ERROR')
  assert.equal(answered(400, undefined), 'UPSTREAM_ERROR')
})

test('an answer without a time is UPSTREAM_INVALID_RESPONSE', () => {
  const unreadable = ['', ' ', 1_764_230_400, null]
  for (const body of [{}, null, [], undefined, 'Invalid Timezone', ...unreadable.map((dateTime) => ({ dateTime }))]) {
    assert.equal(answered(200, body), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('an attempt is so short that a hanging attempt leaves time for another', () => {
  assert.ok((timezone.attemptTimeoutMs ?? 10_000) <= 5_000)
})

test('a clock is not stored', () => {
  assert.equal(current.cache, undefined)
})

test('both spellings of every member are read, and the local time has no offset', () => {
  const { dateTime, timeZone, dstActive, dayOfWeek, ...rest } = recorded
  const written = { date_time: dateTime, time_zone: timeZone, dst_active: dstActive, day_of_week: dayOfWeek }
  assert.deepEqual(answered(200, { ...rest, ...written }), current.example.data)
  assert.deepEqual(
    answered(200, { ...rest, ...written, time_zone: undefined, timezone: timeZone }),
    current.example.data,
  )
  for (const offset of ['Z', '+01:00', '-0300', '+00:00']) {
    assert.deepEqual(answered(200, { ...recorded, dateTime: `${dateTime}${offset}` }), current.example.data)
    assert.deepEqual(answered(200, { date_time: `2026-03-18T14:02:26${offset}` }), {
      ...{ date: '2026-03-18', time: '14:02', datetime: '2026-03-18T14:02:26' },
      ...{ timezone: null, dst_active: null, day_of_week: null },
    })
  }
  assert.equal(answered(200, {}), 'UPSTREAM_INVALID_RESPONSE')
})

test('a local time has no offset, however the offset and the time are written', () => {
  for (const written of [
    '2026-03-18T14:02:26+01:00',
    '2026-03-18 14:02:26+0100',
    '2026-03-18T14:02:26+01',
    '2026-03-18T14:02:26Z',
    '2026-03-18T14:02:26z',
    '2026-03-18T14:02:26 +0100',
    '2026-03-18 14:02:26 UTC',
    '2026-03-18T14:02:26 GMT+1',
    '2026-03-18T14:02:26+01:00[Europe/Amsterdam]',
    '2026-03-18T14:02:26−01:00',
  ]) {
    const data = answered(200, { date_time: written })
    assert.ok(typeof data === 'object')
    assert.equal(data.datetime, written.slice(0, 19))
    assert.deepEqual([data.date, data.time], ['2026-03-18', '14:02'])
  }
})

test('a time has no seconds, even if the upstream writes them', () => {
  const data = answered(200, { dateTime: '2026-03-18T14:02:26', time: '14:02:26' })
  assert.ok(typeof data === 'object')
  assert.equal(data.time, '14:02')
})
