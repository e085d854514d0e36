import { localTimeIn } from '../catalog/calendar.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, integer, text } from '../catalog/json.ts'
import { timeZone } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/timezone.json' with { type: 'json' }

/** When the example was recorded. */
const RECORDED_AT = Date.parse('2026-03-18T13:02:26.382Z')
const RECORDED_FRACTION = '3823348'

/** The upstream's two versions spell the names of the members in two ways. */
const clock = record({
  date: field.text((clock) => isoDate(clock) ?? partOf(clock, /^\d{4}-\d\d-\d\d/), 'YYYY-MM-DD'),
  time: field.text((clock) => partOf(clock, /(?<=[T ])\d\d:\d\d/) ?? text(clock.time), 'HH:mm'),
  datetime: required.text(localTime, 'Local time of the zone, without offset'),
  timezone: field.text(
    ({ timeZone, time_zone, timezone }) => timeZone ?? time_zone ?? timezone,
    'IANA name of the zone',
  ),
  dst_active: field.flag(
    ({ dstActive, dst_active }) => dstActive ?? dst_active,
    'Whether daylight saving time is in force',
  ),
  day_of_week: field.text(({ dayOfWeek, day_of_week }) => dayOfWeek ?? day_of_week, 'In English'),
})

export default upstream({
  displayName: 'Time zones',
  category: 'time',
  description: 'Current date, time and daylight saving state in a time zone.',
  tags: ['time', 'timezone', 'clock', 'date', 'dst'],
  keywords: words('time hour clock daylight saving utc gmt local'),
  terms: { summary: 'Free, without a key or a published limit.', url: 'https://timeapi.io' },
  baseUrl: 'https://timeapi.io',
  // No limit is published, and a clock cannot be cached: two a second are polite.
  caps: { concurrency: 4, rates: [{ max: 120, seconds: 60 }] },
  // It answers at once or, at bad times, not at all; a second attempt helps more than a long
  // attempt.
  attemptTimeoutMs: 4_000,
  probe: { request: { path: path`/api/time/current/zone`, query: { timeZone: 'UTC' } }, everySeconds: 120 },
  endpoints: {
    '/current': endpoint({
      description: 'Current date and time in a time zone.',
      parameters: { timezone: timeZone('IANA time zone name, `Europe/Amsterdam`') },
      data: clock,
      request: ({ timezone }) => ({ path: path`/api/time/current/zone`, query: { timeZone: timezone } }),
      example: { ...recordings['/current'], responseFor: recordedIn },
    }),
  },
})

function partOf(clock: Source, pattern: RegExp): string | undefined {
  return localTime(clock)?.match(pattern)?.[0]
}

/** Text after the time, such as an offset or a zone, is not part of a local time. */
function localTime({ dateTime, date_time, datetime }: Source): string | undefined {
  const written = filledText(dateTime) ?? filledText(date_time) ?? filledText(datetime) ?? undefined
  return written?.match(/^\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)/)?.[1] ?? written
}

/** Made from the numbers, because the upstream's own `date` is MM/DD/YYYY. */
function isoDate(clock: Source): string | null {
  const year = integer(clock.year)
  const month = integer(clock.month)
  const day = integer(clock.day)
  if (year === null || month === null || day === null) return null
  return [String(year).padStart(4, '0'), String(month).padStart(2, '0'), String(day).padStart(2, '0')].join('-')
}

/** The recorded moment in another zone. */
function recordedIn({ timezone }: { timezone: string }) {
  const { date, time, dayOfWeek, isDst } = localTimeIn(timezone, RECORDED_AT)
  const [year, month, day] = date.split('-').map(Number)
  const [hour, minute, seconds] = time.split(':').map(Number)
  return {
    ...{ year, month, day, hour, minute, seconds, milliSeconds: 382, dateTime: `${date}T${time}.${RECORDED_FRACTION}` },
    ...{ time: time.slice(0, 5), timeZone: timezone, dayOfWeek, dstActive: isDst },
  }
}
