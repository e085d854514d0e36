import Type from 'typebox'
import {
  countryCode,
  endpoint,
  failed,
  invalid,
  isObject,
  items,
  members,
  notFound,
  nullable,
  number,
  numeric,
  path,
  ResponseClass,
  text,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../catalog/upstream.ts'

const parameters = Type.Object({ country: countryCode })

const origin = {
  indicator: nullable(Type.String({ description: 'Code of the indicator' })),
  country_code: nullable(Type.String({ description: 'ISO 3166-1 alpha-2' })),
  country_iso3: nullable(Type.String({ description: 'ISO 3166-1 alpha-3' })),
  indicator_name: nullable(Type.String({ description: 'Name of the indicator, in English' })),
  last_updated: nullable(Type.String({ description: 'Day on which the figures were published' })),
}

// Annual figures, revised a few times a year.
const cache = {
  seconds: 86_400,
  staleWhileRevalidateSeconds: 86_400,
  staleIfErrorSeconds: 2_592_000,
  notFoundSeconds: 3_600,
}

const upperCased = ({ country }: { country: string }) => ({ country: country.toUpperCase() })

const isUnpublished = (row: unknown): boolean => isObject(row) && row.value === null

const year = (date: unknown): number | null => (typeof date === 'string' && /^\d{4}$/.test(date) ? Number(date) : null)

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
      data: Type.Object({
        year: nullable(Type.Integer({ description: 'Year of the figure, the latest published' })),
        country: nullable(Type.String({ description: 'Name of the country' })),
        gdp_usd: Type.Number({ description: 'Current US dollars' }),
        ...origin,
      }),
      cache,
      complete: upperCased,
      request: ({ country }) => latestOf(country, 'NY.GDP.MKTP.CD'),
      map: ({ body }) => {
        const figure = latestFigure(body)
        if (figure instanceof ResponseClass) return figure
        const { year, country, value, ...rest } = figure
        return { year, country, gdp_usd: value, ...rest }
      },
      example: recordedGdp(),
    }),
    '/population': endpoint({
      description: 'Latest total population of a country.',
      parameters,
      data: Type.Object({
        year: nullable(Type.Integer({ description: 'Year of the figure, the latest published' })),
        country: nullable(Type.String({ description: 'Name of the country' })),
        population: Type.Number({ description: 'Inhabitants at midyear' }),
        ...origin,
      }),
      cache,
      complete: upperCased,
      request: ({ country }) => latestOf(country, 'SP.POP.TOTL'),
      map: ({ body }) => {
        const figure = latestFigure(body)
        if (figure instanceof ResponseClass) return figure
        const { year, country, value, ...rest } = figure
        return { year, country, population: value, ...rest }
      },
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

/** The newest row with a value: rows come newest first, and years not yet published have none. */
function latestFigure(body: unknown) {
  const [head, rows] = items(body)
  if (!isObject(head)) return invalid()
  if (rows === null || (rows === undefined && numeric(head.total) === 0)) return notFound()
  if (!Array.isArray(rows)) return invalid()
  const row = members(rows.find((candidate) => number(members(candidate).value) !== null))
  const value = number(row.value)
  if (value === null) return rows.every(isUnpublished) ? notFound() : invalid()
  return {
    year: year(row.date),
    country: text(members(row.country).value),
    value,
    indicator: text(members(row.indicator).id),
    country_code: text(members(row.country).id),
    country_iso3: text(row.countryiso3code),
    indicator_name: text(members(row.indicator).value),
    last_updated: text(head.lastupdated),
  }
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
