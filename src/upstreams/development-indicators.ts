import { field, record, required, type Source } from '../catalog/fields.ts'
import { isObject, items, members, number, numeric, objects } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { countryCode } from '../catalog/parameters.ts'
import { failed, notFound, type ResponseClass } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamRequest, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/development-indicators.json' with { type: 'json' }

const parameters = { country: countryCode }

// Annual figures, revised a few times a year.
const cache = { ...freshFor(lifetime.day), staleIfErrorSeconds: lifetime.month, notFoundSeconds: lifetime.hour }

const subject = {
  year: field.integer(({ date }) => year(date), 'Year of the figure, the latest published'),
  country: field.text('country.value', 'Name of the country'),
}

const origin = {
  indicator: field.text('indicator.id', 'Code of the indicator'),
  country_code: field.text('country.id', 'ISO 3166-1 alpha-2'),
  country_iso3: field.text('countryiso3code', 'ISO 3166-1 alpha-3'),
  indicator_name: field.text('indicator.value', 'Name of the indicator, in English'),
  last_updated: field.date('lastupdated', 'Day on which the figures were published'),
}

const gdp = record({ ...subject, gdp_usd: required.amount('value', 'Current US dollars'), ...origin })

const population = record({ ...subject, population: required.amount('value', 'Inhabitants at midyear'), ...origin })

export default upstream({
  displayName: 'Development indicators',
  category: 'economy',
  description: 'Latest published GDP and population of a country, from the World Development Indicators.',
  tags: ['economy', 'gdp', 'population', 'country', 'statistics', 'world bank'],
  keywords: words('inhabitants gross domestic product wealth people census nation'),
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
  reservedParameters: words('mrv page source prefix downloadformat'),
  classify: failureInSuccess,
  endpoints: {
    '/gdp': endpoint({
      description: 'Latest GDP of a country in current US dollars.',
      parameters,
      data: gdp,
      cache,
      request: ({ country }) => latestOf(country, 'NY.GDP.MKTP.CD'),
      readFrom: latestRow,
      example: recordings['/gdp'],
    }),
    '/population': endpoint({
      description: 'Latest total population of a country.',
      parameters,
      data: population,
      cache,
      request: ({ country }) => latestOf(country, 'SP.POP.TOTL'),
      readFrom: latestRow,
      example: recordings['/population'],
    }),
  },
})

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

/** The newest row with a value: years not yet published have none. */
function latestRow({ body }: { body: unknown }): Source | ResponseClass | undefined {
  const [head, rows] = items(body)
  if (!isObject(head)) return undefined
  if (rows === null || (rows === undefined && numeric(head.total) === 0)) return notFound()
  if (!Array.isArray(rows)) return undefined
  const published = objects(rows).filter(({ value }) => number(value) !== null)
  const [row] = published.toSorted((one, other) => (year(other.date) ?? 0) - (year(one.date) ?? 0))
  if (!row) return rows.every((other) => isObject(other) && other.value === null) ? notFound() : undefined
  return { ...row, lastupdated: head.lastupdated }
}

function year(date: unknown): number | null {
  return typeof date === 'string' && /^\d{4}$/.test(date) ? Number(date) : null
}
