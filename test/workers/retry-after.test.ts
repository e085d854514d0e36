import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseHttpDate, readRetryAfter } from '../../workers/upstream/retry-after.ts'

const NOW = Date.UTC(2026, 9, 15, 12)
const AHEAD = NOW + 7_000

/** Seven seconds ahead in every form that servers write. */
const DATES = [
  'Thu, 15 Oct 2026 12:00:07 GMT',
  'Thursday, 15-Oct-26 12:00:07 GMT',
  'Thu Oct 15 12:00:07 2026',
  'Thu, 15-Oct-2026 12:00:07 GMT',
  'Thu,15 Oct 2026 12:00:07 GMT',
  'thu, 15 oct 2026 12:00:07 gmt',
  '15 Oct 2026 12:00:07 GMT',
  'Thu, 15 Oct 2026 12:00:07',
  'Thu, 15 Oct 2026 12:00:07 UTC',
  'Thu, 15 Oct 2026 12:00:07 +0000',
  'Thu, 15 Oct 2026 14:00:07 +0200',
  'Thu, 15 Oct 2026 05:00:07 -0700',
  'Thu Oct 15 12:00:07 GMT 2026',
  '2026-10-15T12:00:07Z',
  '2026-10-15T12:00:07.000Z',
  '2026-10-15T14:00:07+02:00',
  '2026-10-15 12:00:07',
]

describe('Retry-After', () => {
  const zone = process.env.TZ
  for (const timeZone of ['UTC', 'America/Los_Angeles', 'Asia/Kathmandu', 'Pacific/Kiritimati']) {
    it(`Retry-After is read in every form of a date, and as GMT, by a process in ${timeZone}`, (t) => {
      t.after(() => {
        if (zone === undefined) delete process.env.TZ
        else process.env.TZ = zone
      })
      process.env.TZ = timeZone
      for (const date of DATES) {
        assert.equal(parseHttpDate(date), AHEAD, date)
        assert.equal(readRetryAfter(` ${date} `, NOW), 7_000, date)
        assert.equal(readRetryAfter(`${date}, ${date}`, NOW), 7_000, `${date} twice`)
        assert.equal(readRetryAfter(`9, ${date}`, NOW), 9_000, `${date} beside seconds`)
      }
      assert.equal(parseHttpDate('Sun Nov  6 08:49:37 1994'), Date.UTC(1994, 10, 6, 8, 49, 37))
      assert.equal(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT'), Date.UTC(1994, 10, 6, 8, 49, 37))
    })
  }

  const seconds: [value: string, ms: number][] = [
    ['0', 0],
    ['30', 30_000],
    ['2.5', 2_500],
    ['0.0001', 1],
    ['.5', 500],
    ['5.', 5_000],
    ['+5', 5_000],
    ['\t5 ', 5_000],
    ['"5"', 5_000],
    ['1e2', 100_000],
    ['30s', 30_000],
    ['1 day', 86_400_000],
    ['2d', 172_800_000],
    ['1m30s', 90_000],
    ['1h 5 minutes', 3_900_000],
    [String((NOW + 7_000) / 1_000), 7_000],
    [String(NOW + 7_000), 7_000],
    ['5;x', 5_000],
    ['30 seconds', 30_000],
    ['1 sec', 1_000],
    ['1500ms', 1_500],
    ['2m', 120_000],
    ['1 hour', 3_600_000],
    ['5, 7', 7_000],
    ['7,5', 7_000],
    ['soon, 7', 7_000],
    ['5, 5', 5_000],
  ]
  for (const [value, ms] of seconds) {
    it(`Retry-After: ${value} is a wait of ${ms} ms`, () => assert.equal(readRetryAfter(value, NOW), ms))
  }

  it('Retry-After in the past is a wait below zero, and Retry-After too long for a number is an endless wait', () => {
    assert.equal(readRetryAfter('Thu, 15 Oct 2026 11:59:00 GMT', NOW), -60_000)
    assert.equal(readRetryAfter('9'.repeat(400), NOW), Number.POSITIVE_INFINITY)
  })

  for (const value of [
    '',
    ' ',
    ',',
    'soon',
    '-5',
    '-2.5',
    '5 apples',
    '5m 3 apples',
    '5 constructor',
    '1m30',
    '0x10',
    'NaN',
    '5 7',
    'Thu, 99 Foo 2026',
    'Thu',
  ]) {
    it(`Retry-After: ${value} says nothing`, () => assert.equal(readRetryAfter(value, NOW), undefined))
  }

  // In quadratic time each would take minutes.
  it('a long Retry-After is read in linear time', () => {
    for (const value of [`${'1'.repeat(200_000)}!`, `${','.repeat(200_000)}!`, `${'thu'.repeat(60_000)},!`])
      assert.equal(readRetryAfter(value, NOW), undefined)
  })

  it('Retry-After with a date that does not exist is ignored', () => {
    const broken = [
      'Thu, 32 Oct 2026 12:00:07 GMT',
      'Thu, 15 Oct 2026 25:00:07 GMT',
      '2026-13-45T12:00:07Z',
      '12:00:07',
    ]
    for (const date of [...broken, 'Thu, 15 Oct 2026 12:00:07 XYZ', 'Thu Oct 15 2026', '20261015'])
      assert.equal(parseHttpDate(date), undefined, date)
  })
})
