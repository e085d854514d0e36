import Type from 'typebox'
import {
  countryCode,
  endpoint,
  flag,
  InvalidParameter,
  invalid,
  isObject,
  nullable,
  path,
  text,
  texts,
  type Upstream,
} from '../catalog/upstream.ts'

/** Years that the upstream serves, counted from the current one. */
const YEARS_BACK_MAX = 1

const YEARS_AHEAD_MAX = 5

const holiday = Type.Object({
  date: nullable(Type.String({ description: 'YYYY-MM-DD; the same day may come twice, for other subdivisions' })),
  name: nullable(Type.String({ description: 'In English' })),
  local_name: nullable(Type.String({ description: 'Always null: the source no longer gives it' })),
  country_code: nullable(Type.String({ description: 'ISO 3166-1 alpha-2 code' })),
  national: nullable(Type.Boolean({ description: 'Whether it holds in the whole country' })),
  subdivision_codes: Type.Array(Type.String(), { description: 'ISO 3166-2 codes; empty for a national day' }),
  types: Type.Array(Type.String(), {
    description: 'Public, Bank, School, Authorities, Optional, Observance; a public holiday proper has Public',
  }),
})

const publicHolidays: Upstream = {
  displayName: 'Public holidays',
  category: 'calendar',
  description: 'Public holidays of a country: those of a year, or those of the next 365 days.',
  tags: ['holidays', 'calendar', 'country', 'dates'],
  keywords: ['bank', 'holiday', 'vacation', 'christmas', 'easter', 'festival', 'monday', 'workday'],
  tierRequired: 'developer',
  terms: {
    nonCommercial: true,
    summary: 'Free for non-commercial use; commercial use needs a sponsorship of the project.',
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
      parameters: Type.Object({
        year: Type.Integer({ description: 'From the year before the current one to five years after it' }),
        countryCode,
      }),
      data: Type.Object({ holidays: Type.Array(holiday, { description: 'Holidays of the year, by date' }) }),
      // They change only by decree.
      cache: {
        seconds: 86_400,
        staleWhileRevalidateSeconds: 86_400,
        staleIfErrorSeconds: 2_592_000,
        notFoundSeconds: 3_600,
      },
      acceptStatuses: [204],
      complete: ({ year, countryCode }, { now }) => {
        const current = new Date(now).getUTCFullYear()
        const first = current - YEARS_BACK_MAX
        const last = current + YEARS_AHEAD_MAX
        if (year < first || year > last) {
          throw new InvalidParameter('year', `it is not between ${first} and ${last}`)
        }
        return { year, countryCode: countryCode.toUpperCase() }
      },
      request: ({ year, countryCode }) => ({ path: path`/api/v4/Holidays/${countryCode}/${year}` }),
      map: ({ body }) => {
        const holidays = holidaysOf(body)
        return holidays ? { holidays } : invalid()
      },
      example: recordedHolidays(),
    }),
    '/next': endpoint({
      description: 'Public holidays of a country in the next 365 days.',
      parameters: Type.Object({ countryCode }),
      data: Type.Object({ upcoming: Type.Array(holiday, { description: 'Holidays of the next 365 days, by date' }) }),
      // The list slides with the date.
      cache: {
        seconds: 21_600,
        staleWhileRevalidateSeconds: 21_600,
        staleIfErrorSeconds: 604_800,
        notFoundSeconds: 3_600,
      },
      acceptStatuses: [204],
      complete: ({ countryCode }) => ({ countryCode: countryCode.toUpperCase() }),
      request: ({ countryCode }) => ({ path: path`/api/v4/Holidays/${countryCode}/Next` }),
      map: ({ body }) => {
        const upcoming = holidaysOf(body)
        return upcoming ? { upcoming } : invalid()
      },
      example: recordedNext(),
    }),
  },
}

export default publicHolidays

/** The holidays of an answer; a known country without data is answered 204, without a body. */
function holidaysOf(body: unknown) {
  if (body === undefined) return []
  if (!Array.isArray(body)) return undefined
  return body.filter(isObject).map((item) => ({
    date: text(item.date),
    name: text(item.name),
    local_name: text(item.localName),
    country_code: text(item.countryCode),
    national: flag(item.nationalHoliday),
    subdivision_codes: texts(item.subdivisionCodes),
    types: texts(item.holidayTypes),
  }))
}

function recordedHolidays() {
  return {
    parameters: { year: 2027, countryCode: 'PT' },
    now: '2026-10-15T12:00:00Z',
    // biome-ignore format: as recorded
    response: [
      { date: '2027-02-09', name: 'Carnival', countryCode: 'PT', nationalHoliday: true, subdivisionCodes: null, holidayTypes: ['Optional'] },
      { date: '2027-03-26', name: 'Good Friday', countryCode: 'PT', nationalHoliday: true, subdivisionCodes: null, holidayTypes: ['Public'] },
      { date: '2027-06-01', name: 'Azores Day', countryCode: 'PT', nationalHoliday: false, subdivisionCodes: ['PT-20'], holidayTypes: ['Public'] },
    ],
    // biome-ignore format: as recorded
    data: {
      holidays: [
        { date: '2027-02-09', name: 'Carnival', local_name: null, country_code: 'PT', national: true, subdivision_codes: [], types: ['Optional'] },
        { date: '2027-03-26', name: 'Good Friday', local_name: null, country_code: 'PT', national: true, subdivision_codes: [], types: ['Public'] },
        { date: '2027-06-01', name: 'Azores Day', local_name: null, country_code: 'PT', national: false, subdivision_codes: ['PT-20'], types: ['Public'] },
      ],
    },
  }
}

function recordedNext() {
  return {
    parameters: { countryCode: 'GB' },
    // biome-ignore format: as recorded
    response: [
      { date: '2026-11-30', name: "Saint Andrew's Day", countryCode: 'GB', nationalHoliday: false, subdivisionCodes: ['GB-SCT'], holidayTypes: ['Public'] },
      { date: '2026-12-25', name: 'Christmas Day', countryCode: 'GB', nationalHoliday: true, subdivisionCodes: null, holidayTypes: ['Public'] },
    ],
    // biome-ignore format: as recorded
    data: {
      upcoming: [
        { date: '2026-11-30', name: "Saint Andrew's Day", local_name: null, country_code: 'GB', national: false, subdivision_codes: ['GB-SCT'], types: ['Public'] },
        { date: '2026-12-25', name: 'Christmas Day', local_name: null, country_code: 'GB', national: true, subdivision_codes: [], types: ['Public'] },
      ],
    },
  }
}
