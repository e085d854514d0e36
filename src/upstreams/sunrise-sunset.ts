import { dateIn, isCalendarDate } from '../catalog/calendar.ts'
import { field, record, required } from '../catalog/fields.ts'
import { isObject, members, text } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { latitude, longitude, optional, param, timeZone } from '../catalog/parameters.ts'
import { failed, type ResponseClass, rejected } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/sunrise-sunset.json' with { type: 'json' }

/** The time of an event: ISO 8601 with offset, or null if the event does not happen on that day. */
const sunTime = (name: string, what: string) =>
  field.text(
    ({ results }) => timeOfEvent(members(results)[name]),
    `${what}; ISO 8601 with offset, null if it does not happen that day`,
  )

const times = record({
  status: required.text('status', 'OK'),
  sunrise: sunTime('sunrise', 'The upper edge of the sun rises'),
  sunset: sunTime('sunset', 'The upper edge of the sun sets'),
  solar_noon: sunTime('solar_noon', 'The sun stands highest'),
  day_length: field.integer(
    'results.day_length',
    'Seconds; 0 also on days without sunrise and sunset, polar day or polar night',
  ),
  civil_twilight_begin: sunTime('civil_twilight_begin', 'The sun is 6° below the horizon before sunrise'),
  civil_twilight_end: sunTime('civil_twilight_end', 'The sun is 6° below the horizon after sunset'),
  nautical_twilight_begin: sunTime('nautical_twilight_begin', 'The sun is 12° below the horizon before sunrise'),
  nautical_twilight_end: sunTime('nautical_twilight_end', 'The sun is 12° below the horizon after sunset'),
  astronomical_twilight_begin: sunTime(
    'astronomical_twilight_begin',
    'The sun is 18° below the horizon before sunrise',
  ),
  astronomical_twilight_end: sunTime('astronomical_twilight_end', 'The sun is 18° below the horizon after sunset'),
  tzid: field.text('tzid', 'IANA time zone of the times'),
})

export default upstream({
  displayName: 'Sunrise and sunset',
  category: 'weather',
  description: 'Sunrise, sunset, solar noon, twilights and day length for coordinates and a date.',
  tags: ['sun', 'sunrise', 'sunset', 'twilight', 'daylight', 'coordinates'],
  keywords: words('sun rise set dawn dusk dark golden hour day length'),
  terms: {
    summary: 'Free at a reasonable volume; showing the data requires attribution with a link.',
    url: 'https://sunrise-sunset.org/api',
    attribution: 'Sunrise and sunset times by https://sunrise-sunset.org',
  },
  baseUrl: 'https://api.sunrise-sunset.org',
  // The upstream asks for a "reasonable request volume" without a number: one a second on average.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: {
    request: { path: path`/json`, query: { lat: 36.72016, lng: -4.42034, date: '2026-01-01', formatted: 0 } },
    everySeconds: 300,
  },
  reservedParameters: words('callback'),
  mayLack: words(
    'sunrise sunset civil_twilight_begin civil_twilight_end nautical_twilight_begin nautical_twilight_end astronomical_twilight_begin astronomical_twilight_end',
  ),
  classify: classifyStatusWord,
  endpoints: {
    '/times': endpoint({
      description: 'Sunrise, sunset, solar noon and day length for coordinates and a date.',
      parameters: {
        lat: latitude,
        lng: longitude,
        date: optional(
          param.text('YYYY-MM-DD; default: today in the requested time zone', {
            minLength: 10,
            maxLength: 10,
            pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
          }),
        ),
        tzid: optional(timeZone('IANA time zone of the times; default: UTC')),
      },
      data: times,
      cache: {
        // A day at a place never changes: only the room in the cache ends this.
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        // Three decimals are 110 m, a fraction of a second of sunlight.
        key: ({ lat, lng, date, tzid }) => ({ lat: lat.toFixed(3), lng: lng.toFixed(3), date, tzid }),
      },
      complete: (parameters, { now }) => {
        const { date, tzid } = parameters
        if (date !== undefined && !isCalendarDate(date)) throw new InvalidParameter('date', 'it is not a calendar date')
        // The upstream's own "today" can be yesterday.
        return { ...parameters, date: date ?? dateIn(tzid ?? 'UTC')(now) }
      },
      request: ({ lat, lng, date, tzid }) => ({
        path: path`/json`,
        // Without formatted=0 times have neither date nor zone and day_length is a text.
        query: { lat, lng, date, formatted: 0, tzid },
      }),
      readFrom: ({ body }) => {
        const { status, results } = members(body)
        return status === 'OK' && isObject(results) ? body : undefined
      },
      example: recordings['/times'],
    }),
  },
})

/** The word tells, also beside 200: with INVALID_TZID the times are there, but in UTC. */
function classifyStatusWord({ body }: UpstreamResponse): ResponseClass | undefined {
  const { status } = members(body)
  if (status === 'INVALID_TZID') return rejected('The upstream does not know this time zone.')
  // Place and day are checked before the request.
  const isFailure = status === 'INVALID_REQUEST' || status === 'INVALID_DATE' || status === 'UNKNOWN_ERROR'
  return isFailure ? failed() : undefined
}

/**
 * The time of an event of the requested day. Null if the event does not happen on that day; the
 * upstream then writes the first second of 1970.
 */
function timeOfEvent(value: unknown): string | null {
  const time = text(value)
  if (time === null) return null
  // The date of nothing in PHP is before the year 1.
  if (/^(?:-|0000|1970-01-01T00:00:0[01])/.test(time)) return null
  const epochMs = Date.parse(time)
  return epochMs === 0 || epochMs === 1_000 ? null : time
}
