import { codeOfCommonName, comparableName, namesNoCountry, searchableName } from '../catalog/country-names.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { isObject, items, listedObjects, mapObjects, members, number, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { singleSpaced, upperCased } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { failed, notFound } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamRequest, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/countries.json' with { type: 'json' }

const name = param.text(
  'Country name in English, in any letter case, with or without accents and article, or a part of it',
  { maxLength: 100, normalize: searchedName, aliases: ['country', 'q', 'query'] },
)

const cache = {
  seconds: lifetime.day,
  staleWhileRevalidateSeconds: lifetime.week,
  staleIfErrorSeconds: lifetime.month,
  notFoundSeconds: lifetime.day,
}

const country = record({
  name: field.text('name', 'Long ISO 3166 name'),
  alpha2: field.text('alpha2Code', 'ISO 3166-1 alpha-2 code'),
  alpha3: field.text('alpha3Code', 'ISO 3166-1 alpha-3 code'),
  numeric_code: field.text('numericCode', 'Three digits'),
  capital: field.filledText('capital', 'Capital city'),
  region: field.text('region', 'Continent: Africa, Americas, Asia, Europe, Oceania, Polar'),
  subregion: field.text('subregion', 'Part of the region'),
  population: field.integer('population', 'Of 2020'),
  area_km2: field.number('area', 'Square kilometres'),
  latlng: field.numbers(({ latlng }) => whole(latlng), 'Degrees north and east; may be empty'),
  languages: field.texts(
    ({ languages }) => mapObjects(languages, ({ name }) => name),
    'English names of the languages',
  ),
  currencies: field.records('currencies', 'Currencies in use', {
    code: field.text('code', 'ISO 4217 code'),
    name: field.text('name', 'Name of the currency, in English'),
    symbol: field.text('symbol', 'Sign of the currency'),
  }),
  timezones: field.texts('timezones', 'Offsets from UTC, such as UTC+02:00'),
  borders: field.texts('borders', 'Alpha-3 codes'),
  flag_url: field.filledText('flags.svg', 'Picture of the flag'),
})

const keyFacts = record({
  name: country.fields.name,
  region: country.fields.region,
  capital: country.fields.capital,
  population: country.fields.population,
})

const found = record({
  count: required.integer(({ results }) => items(results).length, 'Number of results'),
  results: required.records('results', 'Countries found', country.fields),
})

export default upstream({
  displayName: 'Countries',
  category: 'geography',
  description: 'Countries by name or ISO code: capital, region, population, languages, currencies, flag.',
  tags: ['countries', 'iso-3166', 'capital', 'population', 'geography'],
  keywords: words('nation flag language currency continent region borders'),
  terms: {
    summary: 'Free, no registration. Data derived from REST Countries under MPL-2.0.',
    url: 'https://countries.dev/docs',
    licence: 'https://www.mozilla.org/MPL/2.0/',
    attribution: 'Country data by countries.dev, from REST Countries (MPL-2.0)',
  },
  baseUrl: 'https://countries.dev',
  // The upstream names "about 60 a second" as the point of abuse; a third of it keeps clear of
  // that.
  caps: { concurrency: 8, rates: [{ max: 20, seconds: 1 }] },
  probe: { request: { path: path`/alpha/FI`, query: { fields: 'name' } }, everySeconds: 120 },
  reservedParameters: words('fields'),
  mayLack: words('capital subregion area_km2 symbol numeric_code'),
  // Retired versions of this data model answer every request with 200 and this.
  classify: ({ status, body }) => (status === 200 && members(body).success === false ? failed() : undefined),
  endpoints: {
    '/name': endpoint({
      description: 'Countries whose name contains a text, or the country with this common name.',
      parameters: { name },
      data: found,
      cache: { ...cache, key: ({ name }) => ({ name: name.toLowerCase() }) },
      acceptStatuses: [404],
      request: ({ name }) => nameRequest(name),
      rejects: [400],
      readFrom: ({ body }) => ({ results: isNotFound({ body }) ? [] : readRecords(body) }),
      example: recordings['/name'],
    }),
    '/info': endpoint({
      description: 'Key facts of the one country that a name means.',
      parameters: { name },
      data: keyFacts,
      cache: { ...cache, key: ({ name }) => ({ name: name.toLowerCase() }) },
      request: ({ name }) => nameRequest(name),
      isNotFound,
      rejects: [400],
      readFrom: ({ body, parameters }) => {
        const records = readRecords(body)
        return records && (bestMatch(records, parameters.name) ?? notFound())
      },
      example: recordings['/info'],
    }),
    '/code': endpoint({
      description: 'The country with an ISO 3166-1 code.',
      parameters: {
        code: param.text('ISO 3166-1 alpha-2 or alpha-3 code, FI or FIN', {
          minLength: 2,
          maxLength: 3,
          pattern: '^[A-Za-z]{2,3}$',
          normalize: upperCased,
          aliases: namesOf.country,
        }),
      },
      data: found,
      cache,
      request: ({ code }) => codeRequest(code),
      isNotFound,
      readFrom: ({ body }) => {
        const results = readRecords(body)
        return results?.length === 0 ? notFound() : { results }
      },
      example: recordings['/code'],
    }),
  },
})

/** The form of a name with which the upstream's search finds it. */
function searchedName(parameter: string, name: string): string {
  return singleSpaced(parameter, searchableName(singleSpaced(parameter, name)))
}

/** For an unknown code, or a search without results, the upstream answers 404 with this text. */
function isNotFound({ body }: Pick<UpstreamResponse, 'body'>): boolean {
  return members(body).error === 'Country not found'
}

function nameRequest(name: string): UpstreamRequest {
  const code = codeOfCommonName(name)
  return code ? codeRequest(code) : { path: path`/name/${name}` }
}

function codeRequest(code: string): UpstreamRequest {
  return { path: path`/alpha/${code}` }
}

/**
 * The records of an answer, which is a list for a name and one object for a code; undefined if it
 * is neither, or if no record has a text as its name.
 */
function readRecords(body: unknown): Source[] | undefined {
  const records = isObject(body) ? [body] : listedObjects(body)
  const isOfCountries = records?.length === 0 || records?.some(({ name }) => text(name) !== null)
  return isOfCountries ? records : undefined
}

/**
 * The record that a name means, because "contains" finds British Indian Ocean Territory for India:
 * the record of just that name, of that alternative spelling, of that name before a bracket or
 * comma ("Iran (Islamic Republic of)"), the most populous that has it as whole words ("United
 * States"), else the only record, if a word of its name begins so. Three letters must begin the
 * whole name, because they may be a code: PRI, of Puerto Rico, begins Príncipe. Two letters (SV, of
 * El Salvador, begins Svalbard), a continent, and a word such as "American" mean no country.
 */
function bestMatch(records: Source[], name: string): Source | undefined {
  const wanted = comparableName(name)
  const code = codeOfCommonName(name)
  if (code !== undefined) return records.find((record) => record.alpha2Code === code) ?? only(records)
  const isWanted = (value: unknown): boolean => comparableName(text(value) ?? '') === wanted
  const isNone = namesNoCountry(name) || records.some((record) => isWanted(record.region) || isWanted(record.subregion))
  const found = only(records)
  const has = (value: unknown, words: string): boolean => ` ${comparableName(text(value) ?? '')} `.includes(words)
  return (
    mostPopulous(records.filter((record) => isWanted(record.name))) ??
    mostPopulous(records.filter((record) => items(record.altSpellings).some(isWanted))) ??
    mostPopulous(records.filter((record) => isWanted(text(record.name)?.split(/[(,]/, 1)[0]))) ??
    (isNone ? undefined : mostPopulous(records.filter((record) => has(record.name, ` ${wanted} `)))) ??
    (!isNone && found && isBeginning(wanted, comparableName(text(found.name) ?? '')) ? found : undefined)
  )
}

function isBeginning(part: string, name: string): boolean {
  return part.length > 3 ? ` ${name}`.includes(` ${part}`) : part.length === 3 && name.startsWith(part)
}

function mostPopulous(records: Source[]): Source | undefined {
  return records.toSorted((one, other) => (number(other.population) ?? 0) - (number(one.population) ?? 0))[0]
}

function only(records: Source[]): Source | undefined {
  return records.length === 1 ? records[0] : undefined
}

/**
 * Latitude and longitude; empty if either is missing, because the other alone would be read as
 * another place.
 */
function whole(latlng: unknown): unknown[] {
  return items(latlng).every((degrees) => number(degrees) !== null) ? items(latlng) : []
}
