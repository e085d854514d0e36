import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { isObject, items, members, number, numeric, objects } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { failed, invalid, notFound, type ResponseClass } from '../catalog/response-class.ts'
import { countryCode, otherNames } from '../catalog/shared-parameters.ts'
import { endpoint, path, type Upstream, type UpstreamRequest, type UpstreamResponse } from '../catalog/upstream.ts'

const parameters = Type.Object({ country: countryCode })

// Annual figures, revised a few times a year.
const cache = {
  ...freshFor(lifetime.day),
  staleIfErrorSeconds: lifetime.month,
  notFoundSeconds: lifetime.hour,
}

const upperCased = ({ country }: { country: string }) => ({ country: country.toUpperCase() })

const subject = {
  year: field.integer(({ date }) => year(date), 'Year of the figure, the latest published'),
  country: field.text('country.value', 'Name of the country'),
}

const origin = {
  indicator: field.text('indicator.id', 'Code of the indicator'),
  country_code: field.text('country.id', 'ISO 3166-1 alpha-2'),
  country_iso3: field.text('countryiso3code', 'ISO 3166-1 alpha-3'),
  indicator_name: field.text('indicator.value', 'Name of the indicator, in English'),
  last_updated: field.text('lastupdated', 'Day on which the figures were published'),
}

const gdp = record({ ...subject, gdp_usd: required.number('value', 'Current US dollars'), ...origin })

const population = record({ ...subject, population: required.number('value', 'Inhabitants at midyear'), ...origin })

const developmentIndicators: Upstream = {
  displayName: 'Development indicators',
  category: 'economy',
  description: 'Latest published GDP and population of a country, from the World Development Indicators.',
  tags: ['economy', 'gdp', 'population', 'country', 'statistics', 'world bank'],
  keywords: ['inhabitants', 'gross', 'domestic', 'product', 'wealth', 'people', 'census', 'nation'],
  tierRequired: 'developer',
  terms: {
    summary: 'Data under CC BY 4.0; name the source.',
    url: 'https://creativecommons.org/licenses/by/4.0/',
    licence: 'https://creativecommons.org/licenses/by/4.0/',
    attribution: 'The World Bank: World Development Indicators',
  },
  baseUrl: 'https://api.worldbank.org',
  // No limit is published; ten a second were borne, one a second is advised.
  caps: {
    concurrency: 4,
    rates: [
      { max: 5, seconds: 1 },
      { max: 60, seconds: 60 },
    ],
  },
  // Slow at times: answers after more than 20 s happen, and the next try is quick.
  attemptTimeoutMs: 20_000,
  probe: { request: { path: path`/v2/country/US`, query: { format: 'json' } }, everySeconds: 300 },
  // They choose other rows, another database, or another form of the answer.
  reservedParameters: ['mrv', 'page', 'source', 'prefix', 'downloadformat'],
  classify: failureInSuccess,
  endpoints: {
    '/gdp': endpoint({
      description: 'Latest GDP of a country in current US dollars.',
      parameters,
      aliases: { country: otherNames('country', 'country') },
      data: gdp.schema,
      cache,
      complete: upperCased,
      request: ({ country }) => latestOf(country, 'NY.GDP.MKTP.CD'),
      map: ({ body }) => readLatest(body, gdp.read),
      example: recordedGdp(),
    }),
    '/population': endpoint({
      description: 'Latest total population of a country.',
      parameters,
      aliases: { country: otherNames('country', 'country') },
      data: population.schema,
      cache,
      complete: upperCased,
      request: ({ country }) => latestOf(country, 'SP.POP.TOTL'),
      map: ({ body }) => readLatest(body, population.read),
      example: recordedPopulation(),
    }),
  },
}

export default developmentIndicators

/** Asks for the most recent value that is published (`mrnev`); the default format is XML. */
function latestOf(country: string, indicator: string): UpstreamRequest {
  return { path: path`/v2/country/${country}/indicator/${indicator}`, query: { format: 'json', mrnev: '1' } }
}

/** Failures come with status 200, as one object with messages; 120 is an unknown country code. */
function failureInSuccess({ status, body }: UpstreamResponse): ResponseClass | undefined {
  const messages = members(items(body)[0]).message
  if (status !== 200 || !Array.isArray(messages)) return undefined
  return messages.some((message) => numeric(members(message).id) === 120) ? notFound() : failed()
}

/**
 * Reads the newest row with a value: rows come newest first, and years not yet published have none.
 */
function readLatest<Data>(body: unknown, read: (row: Source) => Data | undefined): Data | ResponseClass {
  const [head, rows] = items(body)
  if (!isObject(head)) return invalid()
  if (rows === null || (rows === undefined && numeric(head.total) === 0)) return notFound()
  if (!Array.isArray(rows)) return invalid()
  const row = objects(rows).find(({ value }) => number(value) !== null)
  if (!row) return rows.every((other) => isObject(other) && other.value === null) ? notFound() : invalid()
  return read({ ...row, lastupdated: head.lastupdated }) ?? invalid()
}

function year(date: unknown): number | null {
  return typeof date === 'string' && /^\d{4}$/.test(date) ? Number(date) : null
}

function recordedGdp() {
  return {
    parameters: { country: 'MX' },
    // biome-ignore format: as recorded
    response: [
      { page: 1, pages: 1, per_page: 20000, total: 4, sourceid: '2', lastupdated: '2026-07-13' },
      [
        {
          indicator: { id: 'NY.GDP.MKTP.CD', value: 'GDP (current US$)' }, country: { id: 'MX', value: 'Mexico' },
          countryiso3code: 'MEX', date: '2025', value: 1832641364775.52, unit: '', obs_status: '', decimal: 0,
        },
        {
          indicator: { id: 'NY.GDP.MKTP.CD', value: 'GDP (current US$)' }, country: { id: 'MX', value: 'Mexico' },
          countryiso3code: 'MEX', date: '2024', value: 1830489311088.89, unit: '', obs_status: '', decimal: 0,
        },
      ],
    ],
    // biome-ignore format: as recorded
    data: {
      year: 2025, country: 'Mexico', gdp_usd: 1832641364775.52, indicator: 'NY.GDP.MKTP.CD',
      country_code: 'MX', country_iso3: 'MEX', indicator_name: 'GDP (current US$)', last_updated: '2026-07-13',
    },
  }
}

function recordedPopulation() {
  return {
    parameters: { country: 'US' },
    // biome-ignore format: as recorded
    response: [
      { page: 1, pages: 1, per_page: 50, total: 2, sourceid: '2', lastupdated: '2026-07-13' },
      [
        {
          indicator: { id: 'SP.POP.TOTL', value: 'Population, total' }, country: { id: 'US', value: 'United States' },
          countryiso3code: 'USA', date: '2023', value: 336755052, unit: '', obs_status: '', decimal: 0,
        },
        {
          indicator: { id: 'SP.POP.TOTL', value: 'Population, total' }, country: { id: 'US', value: 'United States' },
          countryiso3code: 'USA', date: '2022', value: 333996304, unit: '', obs_status: '', decimal: 0,
        },
      ],
    ],
    // biome-ignore format: as recorded
    data: {
      year: 2023, country: 'United States', population: 336755052, indicator: 'SP.POP.TOTL',
      country_code: 'US', country_iso3: 'USA', indicator_name: 'Population, total', last_updated: '2026-07-13',
    },
  }
}
