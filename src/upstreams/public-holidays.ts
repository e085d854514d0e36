import type { CallContext } from '../catalog/endpoint.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { listedObjects, members, text, texts } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { countryCode, param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/public-holidays.json' with { type: 'json' }

/** Years that the upstream serves, counted from the current one. */
const YEARS_BACK_MAX = 1

const YEARS_AHEAD_MAX = 5

const holiday = {
  date: field.date('date', 'YYYY-MM-DD; the same day may come twice, for other subdivisions'),
  name: field.text('name', 'In English'),
  local_name: field.text('localName', 'Always null: the source no longer gives it'),
  country_code: field.text('countryCode', 'ISO 3166-1 alpha-2 code'),
  national: field.flag('nationalHoliday', 'Whether it holds in the whole country'),
  subdivision_codes: field.texts('subdivisionCodes', 'ISO 3166-2 codes; empty for a national day'),
  types: field.texts(
    'holidayTypes',
    'Public, Bank, School, Authorities, Optional, Observance; a public holiday proper has Public',
  ),
}

const inYear = record({ holidays: required.records('holidays', 'Holidays of the year, by date', holiday) })

const next = record({ upcoming: required.records('upcoming', 'Holidays of the next 365 days, by date', holiday) })

export default upstream({
  displayName: 'Public holidays',
  category: 'calendar',
  description: 'Public holidays of a country, of a year or of the next 365 days.',
  tags: ['holidays', 'calendar', 'country', 'dates'],
  keywords: words('bank holiday vacation christmas easter festival monday workday'),
  terms: {
    nonCommercial: true,
    summary:
      'Free for non-commercial use; commercial use needs a sponsorship of the project. Building a holiday portal of your own from the data is forbidden.',
    url: 'https://nagerholidays.com/legal/termsofservice',
    attribution: 'Nager.Date',
  },
  baseUrl: 'https://nagerholidays.com',
  // The site sets no limit; two a second on average is polite to a community service.
  caps: { concurrency: 4, rates: [{ max: 120, seconds: 60 }] },
  probe: { request: { path: path`/api/v4/Versions` }, everySeconds: 300 },
  endpoints: {
    '/holidays': endpoint({
      description: 'Public holidays of a country in a year.',
      parameters: {
        year: param.integer('From the year before the current one to five years after it', { normalize: servedYear }),
        countryCode,
      },
      data: inYear,
      // They change only by decree.
      cache: { ...freshFor(lifetime.day), staleIfErrorSeconds: lifetime.month, notFoundSeconds: lifetime.hour },
      // A known country without data, and so without a body.
      acceptStatuses: [204],
      request: ({ year, countryCode }) => ({ path: path`/api/v4/Holidays/${countryCode}/${year}` }),
      isNotFound,
      readFrom: ({ body = [] }) => ({ holidays: readable(body) }),
      example: recordings['/holidays'],
    }),
    '/next': endpoint({
      description: 'Public holidays of a country in the next 365 days.',
      parameters: { countryCode },
      data: next,
      // The list slides with the date.
      cache: { ...freshFor(6 * lifetime.hour), staleIfErrorSeconds: lifetime.week, notFoundSeconds: lifetime.hour },
      acceptStatuses: [204],
      request: ({ countryCode }) => ({ path: path`/api/v4/Holidays/${countryCode}/Next` }),
      isNotFound,
      readFrom: ({ body = [] }) => ({ upcoming: readable(body) }),
      example: recordings['/next'],
    }),
  },
})

function servedYear(name: string, year: number, { now }: CallContext): number {
  const current = new Date(now).getUTCFullYear()
  const first = current - YEARS_BACK_MAX
  const last = current + YEARS_AHEAD_MAX
  if (year < first || year > last) throw new InvalidParameter(name, `it is not between ${first} and ${last}`)
  return year
}

/** Undefined if a day says where it holds in a form that would be read as the whole country. */
function readable(body: unknown): Source[] | undefined {
  const days = listedObjects(body)
  const isRead = days?.every(({ subdivisionCodes: codes }) =>
    Array.isArray(codes) ? texts(codes).length === codes.length : (codes ?? null) === null,
  )
  return isRead ? days?.toSorted(byDate) : undefined
}

function byDate(one: Source, other: Source): number {
  return (text(one.date) ?? '').localeCompare(text(other.date) ?? '')
}

function isNotFound({ body }: UpstreamResponse): boolean {
  return members(body).title === 'Unknown country code'
}
