import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { countryCode, otherNames } from '../catalog/shared-parameters.ts'
import { endpoint, InvalidParameter, path, type Upstream, type UpstreamResponse } from '../catalog/upstream.ts'

/** Years that the upstream serves, counted from the current one. */
const YEARS_BACK_MAX = 1

const YEARS_AHEAD_MAX = 5

const holiday = {
  date: field.text('date', 'YYYY-MM-DD; the same day may come twice, for other subdivisions'),
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

const publicHolidays: Upstream = {
  displayName: 'Public holidays',
  category: 'calendar',
  description: 'Public holidays of a country: those of a year, or those of the next 365 days.',
  tags: ['holidays', 'calendar', 'country', 'dates'],
  keywords: ['bank', 'holiday', 'vacation', 'christmas', 'easter', 'festival', 'monday', 'workday'],
  tierRequired: 'developer',
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
      parameters: Type.Object({
        year: Type.Integer({ description: 'From the year before the current one to five years after it' }),
        countryCode,
      }),
      aliases: { countryCode: otherNames('country', 'countryCode') },
      data: inYear.schema,
      // They change only by decree.
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        notFoundSeconds: lifetime.hour,
      },
      // A known country without data, and so without a body.
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
      isNotFound,
      map: ({ body = [] }) => inYear.read({ holidays: body }) ?? invalid(),
      example: recordedHolidays(),
    }),
    '/next': endpoint({
      description: 'Public holidays of a country in the next 365 days.',
      parameters: Type.Object({ countryCode }),
      aliases: { countryCode: otherNames('country', 'countryCode') },
      data: next.schema,
      // The list slides with the date.
      cache: {
        ...freshFor(6 * lifetime.hour),
        staleIfErrorSeconds: lifetime.week,
        notFoundSeconds: lifetime.hour,
      },
      acceptStatuses: [204],
      complete: ({ countryCode }) => ({ countryCode: countryCode.toUpperCase() }),
      request: ({ countryCode }) => ({ path: path`/api/v4/Holidays/${countryCode}/Next` }),
      isNotFound,
      map: ({ body = [] }) => next.read({ upcoming: body }) ?? invalid(),
      example: recordedNext(),
    }),
  },
}

export default publicHolidays

function isNotFound({ body }: UpstreamResponse): boolean {
  return members(body).title === 'Unknown country code'
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
