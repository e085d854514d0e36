import Type from 'typebox'
import { isTimeZone, localTimeIn, usualZoneName } from '../catalog/calendar.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { integer, text } from '../catalog/json.ts'
import { invalid } from '../catalog/response-class.ts'
import { otherNames, TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, InvalidParameter, path, type Upstream } from '../catalog/upstream.ts'

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

const timezone: Upstream = {
  displayName: 'Time zones',
  category: 'time',
  description: 'Current date, time and daylight saving state in a time zone.',
  tags: ['time', 'timezone', 'clock', 'date', 'dst'],
  keywords: ['time', 'hour', 'clock', 'daylight', 'saving', 'utc', 'gmt', 'local'],
  tierRequired: 'developer',
  terms: { summary: 'Free, without a key or a published limit.', url: 'https://timeapi.io' },
  baseUrl: 'https://timeapi.io',
  // No limit is published, and a clock cannot be cached: two a second are polite.
  caps: { concurrency: 4, rates: [{ max: 120, seconds: 60 }] },
  // It answers at once or, at bad times, not at all; a second attempt helps more than a long
  // attempt.
  attemptTimeoutMs: 4_000,
  probe: {
    request: { path: path`/api/time/current/zone`, query: { timeZone: 'UTC' } },
    everySeconds: 120,
  },
  endpoints: {
    '/current': endpoint({
      description: 'Current date and time in a time zone.',
      parameters: Type.Object({
        timezone: Type.String({
          minLength: 1,
          maxLength: TEXT_LENGTH_MAX,
          pattern: '^[A-Za-z][A-Za-z0-9_+/-]*$',
          description: 'IANA time zone name, `Europe/Amsterdam`',
        }),
      }),
      aliases: { timezone: otherNames('timezone', 'timezone') },
      data: clock.schema,
      complete: (parameters) => ({ ...parameters, timezone: knownZone(parameters.timezone) }),
      request: ({ timezone }) => ({
        path: path`/api/time/current/zone`,
        query: { timeZone: timezone },
      }),
      map: ({ body }) => clock.read(body) ?? invalid(),
      example: recordedCurrent(),
    }),
  },
}

export default timezone

function knownZone(name: string): string {
  if (!isTimeZone(name)) throw new InvalidParameter('timezone', 'it is not an IANA time zone')
  return usualZoneName(name)
}

function partOf(clock: Source, pattern: RegExp): string | undefined {
  return localTime(clock)?.match(pattern)?.[0]
}

/** What is behind the time, such as an offset or a zone, does not belong to a local time. */
function localTime({ dateTime, date_time, datetime }: Source): string | undefined {
  const written = text(dateTime) ?? text(date_time) ?? text(datetime) ?? undefined
  return written?.match(/^\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)/)?.[1] ?? written
}

/** Of the numbers: the upstream's own `date` is MM/DD/YYYY. */
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

function recordedCurrent() {
  return {
    responseFor: recordedIn,
    parameters: { timezone: 'Europe/Amsterdam' },
    // biome-ignore format: as recorded
    response: {
      year: 2026, month: 3, day: 18, hour: 14, minute: 2, seconds: 26, milliSeconds: 382, dateTime: '2026-03-18T14:02:26.3823348', date: '03/18/2026',
      time: '14:02', timeZone: 'Europe/Amsterdam', dayOfWeek: 'Wednesday', dstActive: false,
    },
    // biome-ignore format: as recorded
    data: {
      date: '2026-03-18', time: '14:02', datetime: '2026-03-18T14:02:26.3823348', timezone: 'Europe/Amsterdam', dst_active: false,
      day_of_week: 'Wednesday',
    },
  }
}
