import Type from 'typebox'
import { codeOfCommonName, comparableName, namesNoCountry, searchableName } from '../catalog/country-names.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { isObject, items, members, number, objects, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { failed, invalid, notFound } from '../catalog/response-class.ts'
import { otherNames } from '../catalog/shared-parameters.ts'
import {
  endpoint,
  path,
  singleSpaced,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../catalog/upstream.ts'

const countryName = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Country name in English, in any letter case, with or without accents and article, or a part of it',
})

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
  latlng: field.numbers('latlng', 'Degrees north and east; may be empty'),
  languages: field.texts(
    ({ languages }) => objects(languages).map(({ name }) => name),
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

const countries: Upstream = {
  displayName: 'Countries',
  category: 'geography',
  description: 'Countries by name or ISO code: capital, region, population, languages, currencies, flag.',
  tags: ['countries', 'iso-3166', 'capital', 'population', 'geography'],
  keywords: ['nation', 'flag', 'language', 'currency', 'continent', 'region', 'borders'],
  tierRequired: 'developer',
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
  reservedParameters: ['fields'],
  mayLack: ['capital', 'subregion', 'area_km2', 'symbol', 'numeric_code'],
  // Retired versions of this data model answer every request with 200 and this.
  classify: ({ status, body }) => (status === 200 && members(body).success === false ? failed() : undefined),
  endpoints: {
    '/name': endpoint({
      description: 'Countries whose name contains a text, or the country with this common name.',
      parameters: Type.Object({ name: countryName }),
      aliases: { name: ['country', 'q', 'query'] },
      data: found.schema,
      cache: { ...cache, key: ({ name }) => ({ name: name.toLowerCase() }) },
      acceptStatuses: [404],
      complete: ({ name }) => ({ name: trimmedName(name) }),
      request: ({ name }) => nameRequest(name),
      rejects: [400],
      map: ({ body }) => found.read({ results: isNotFound({ body }) ? [] : readRecords(body) }) ?? invalid(),
      example: recordedName(),
    }),
    '/info': endpoint({
      description: 'Key facts of the one country that a name means.',
      parameters: Type.Object({ name: countryName }),
      aliases: { name: ['country', 'q', 'query'] },
      data: keyFacts.schema,
      cache: { ...cache, key: ({ name }) => ({ name: name.toLowerCase() }) },
      complete: ({ name }) => ({ name: trimmedName(name) }),
      request: ({ name }) => nameRequest(name),
      isNotFound,
      rejects: [400],
      map: ({ body, parameters }) => {
        const records = readRecords(body)
        if (!records) return invalid()
        const best = bestMatch(records, parameters.name)
        return best ? keyFacts.read(best) : notFound()
      },
      example: recordedInfo(),
    }),
    '/code': endpoint({
      description: 'The country with an ISO 3166-1 code.',
      parameters: Type.Object({
        code: Type.String({
          minLength: 2,
          maxLength: 3,
          pattern: '^[A-Za-z]{2,3}$',
          description: 'ISO 3166-1 alpha-2 or alpha-3 code, FI or FIN',
        }),
      }),
      aliases: { code: otherNames('country', 'code') },
      data: found.schema,
      cache,
      complete: ({ code }) => ({ code: code.toUpperCase() }),
      request: ({ code }) => codeRequest(code),
      isNotFound,
      map: ({ body }) => {
        const results = readRecords(body)
        return results?.length === 0 ? notFound() : (found.read({ results }) ?? invalid())
      },
      example: recordedCode(),
    }),
  },
}

export default countries

/** The name as it is sent. */
function trimmedName(name: string): string {
  return singleSpaced('name', searchableName(singleSpaced('name', name)))
}

/** An unknown code, and a search that finds nothing, are answered 404 with this text. */
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
 * The records of an answer, which is a list for a name and one object for a code; undefined when it
 * is neither.
 */
function readRecords(body: unknown): Source[] | undefined {
  if (Array.isArray(body)) return objects(body)
  return isObject(body) && text(body.name) !== null ? [body] : undefined
}

/**
 * The record that a name means, because "contains" finds British Indian Ocean Territory for India:
 * the record of just that name, of that alternative spelling, of that name before a bracket or
 * comma ("Iran (Islamic Republic of)"), the most populous that has it as whole words ("United
 * States"), else the only record, if a word of its name begins so. Two letters (SV, of El Salvador,
 * begins Svalbard), a continent, and a word such as "American" mean no country.
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
    mostPopulous(records.filter((record) => isWanted(text(record.name)?.replace(/[(,].*$/, '')))) ??
    (isNone ? undefined : mostPopulous(records.filter((record) => has(record.name, ` ${wanted} `)))) ??
    (!isNone && found && wanted.length > 2 && has(found.name, ` ${wanted}`) ? found : undefined)
  )
}

function mostPopulous(records: Source[]): Source | undefined {
  return records.toSorted((one, other) => (number(other.population) ?? 0) - (number(one.population) ?? 0))[0]
}

function only(records: Source[]): Source | undefined {
  return records.length === 1 ? records[0] : undefined
}

function recordedName() {
  return {
    parameters: { name: 'united' },
    // biome-ignore format: as recorded
    response: [
      {
        alpha2Code: 'UM', alpha3Code: 'UMI', altSpellings: ['UM'], borders: [], callingCodes: ['246'], capital: '',
        currencies: [{ code: 'GBP', name: 'British pound', symbol: '£' }], demonym: 'American', independent: false, flag: 'https://flagcdn.com/um.svg',
        flags: { svg: 'https://flagcdn.com/um.svg', png: 'https://flagcdn.com/w320/um.png' }, gini: null,
        languages: [{ iso639_1: 'en', iso639_2: 'eng', name: 'English', nativeName: 'English' }], latlng: [], name: 'United States Minor Outlying Islands',
        nativeName: 'United States Minor Outlying Islands', numericCode: '581', population: 300, region: 'Americas', subregion: 'Northern America',
        timezones: ['UTC-11:00', 'UTC-10:00'], topLevelDomain: ['.us'], cioc: '',
      },
      {
        alpha2Code: 'TZ', alpha3Code: 'TZA', altSpellings: ['TZ', 'United Republic of Tanzania'], area: 945087, borders: ['BDI', 'COD'], callingCodes: ['255'],
        capital: 'Dodoma', currencies: [{ code: 'TZS', name: 'Tanzanian shilling', symbol: 'Sh' }], demonym: 'Tanzanian', independent: true,
        flag: 'https://flagcdn.com/tz.svg', flags: { svg: 'https://flagcdn.com/tz.svg', png: 'https://flagcdn.com/w320/tz.png' }, gini: 40.5,
        languages: [
          { iso639_1: 'sw', iso639_2: 'swa', name: 'Swahili', nativeName: 'Kiswahili' },
          { iso639_1: 'en', iso639_2: 'eng', name: 'English', nativeName: 'English' },
        ],
        latlng: [-6, 35], name: 'Tanzania, United Republic of', nativeName: 'Tanzania', numericCode: '834', population: 59734213, region: 'Africa',
        subregion: 'Eastern Africa', timezones: ['UTC+03:00'], topLevelDomain: ['.tz'], cioc: 'TAN',
      },
    ],
    // biome-ignore format: as recorded
    data: {
      count: 2,
      results: [
        {
          name: 'United States Minor Outlying Islands', alpha2: 'UM', alpha3: 'UMI', numeric_code: '581', capital: null, region: 'Americas',
          subregion: 'Northern America', population: 300, area_km2: null, latlng: [], languages: ['English'],
          currencies: [{ code: 'GBP', name: 'British pound', symbol: '£' }], timezones: ['UTC-11:00', 'UTC-10:00'], borders: [],
          flag_url: 'https://flagcdn.com/um.svg',
        },
        {
          name: 'Tanzania, United Republic of', alpha2: 'TZ', alpha3: 'TZA', numeric_code: '834', capital: 'Dodoma', region: 'Africa', subregion: 'Eastern Africa',
          population: 59734213, area_km2: 945087, latlng: [-6, 35], languages: ['Swahili', 'English'],
          currencies: [{ code: 'TZS', name: 'Tanzanian shilling', symbol: 'Sh' }], timezones: ['UTC+03:00'], borders: ['BDI', 'COD'],
          flag_url: 'https://flagcdn.com/tz.svg',
        },
      ],
    },
  }
}

function recordedInfo() {
  return {
    parameters: { name: 'India' },
    // biome-ignore format: as recorded
    response: [
      {
        alpha2Code: 'IO', alpha3Code: 'IOT', altSpellings: ['IO'], area: 60, borders: [], callingCodes: ['246'], capital: 'Diego Garcia',
        currencies: [{ code: 'USD', name: 'United States dollar', symbol: '$' }], demonym: 'Indian', independent: true, flag: 'https://flagcdn.com/io.svg',
        flags: { svg: 'https://flagcdn.com/io.svg', png: 'https://flagcdn.com/w320/io.png' }, gini: null,
        languages: [{ iso639_1: 'en', iso639_2: 'eng', name: 'English', nativeName: 'English' }], latlng: [-6, 71.5], name: 'British Indian Ocean Territory',
        nativeName: 'British Indian Ocean Territory', numericCode: '086', population: 3000, region: 'Africa', subregion: 'Eastern Africa', timezones: ['UTC+06:00'],
        topLevelDomain: ['.io'], cioc: '',
      },
      {
        alpha2Code: 'IN', alpha3Code: 'IND', altSpellings: ['IN', 'Bhārat'], area: 3287590, borders: ['AFG', 'BGD'], callingCodes: ['91'], capital: 'New Delhi',
        currencies: [{ code: 'INR', name: 'Indian rupee', symbol: '₹' }], demonym: 'Indian', independent: true, flag: 'https://flagcdn.com/in.svg',
        flags: { svg: 'https://flagcdn.com/in.svg', png: 'https://flagcdn.com/w320/in.png' }, gini: 35.7,
        languages: [
          { iso639_1: 'hi', iso639_2: 'hin', name: 'Hindi', nativeName: 'हिन्दी' }, { iso639_1: 'en', iso639_2: 'eng', name: 'English', nativeName: 'English' },
        ],
        latlng: [20, 77], name: 'India', nativeName: 'भारत', numericCode: '356', population: 1380004385, region: 'Asia', subregion: 'Southern Asia',
        timezones: ['UTC+05:30'], topLevelDomain: ['.in'], cioc: 'IND',
      },
    ],
    // biome-ignore format: as recorded
    data: { name: 'India', region: 'Asia', capital: 'New Delhi', population: 1380004385 },
  }
}

function recordedCode() {
  return {
    parameters: { code: 'FI' },
    // biome-ignore format: as recorded
    response: {
      alpha2Code: 'FI', alpha3Code: 'FIN', altSpellings: ['FI', 'Suomi', 'Republic of Finland', 'Suomen tasavalta', 'Republiken Finland'], area: 338424,
      borders: ['NOR', 'SWE', 'RUS'], callingCodes: ['358'], capital: 'Helsinki', currencies: [{ code: 'EUR', name: 'Euro', symbol: '€' }], demonym: 'Finnish',
      independent: true, flag: 'https://flagcdn.com/fi.svg', flags: { svg: 'https://flagcdn.com/fi.svg', png: 'https://flagcdn.com/w320/fi.png' }, gini: 27.3,
      languages: [
        { iso639_1: 'fi', iso639_2: 'fin', name: 'Finnish', nativeName: 'suomi' }, { iso639_1: 'sv', iso639_2: 'swe', name: 'Swedish', nativeName: 'svenska' },
      ],
      latlng: [64, 26], name: 'Finland', nativeName: 'Suomi', numericCode: '246', population: 5530719, region: 'Europe', subregion: 'Northern Europe',
      timezones: ['UTC+02:00'], topLevelDomain: ['.fi'], cioc: 'FIN',
    },
    // biome-ignore format: as recorded
    data: {
      count: 1,
      results: [
        {
          name: 'Finland', alpha2: 'FI', alpha3: 'FIN', numeric_code: '246', capital: 'Helsinki', region: 'Europe', subregion: 'Northern Europe',
          population: 5530719, area_km2: 338424, latlng: [64, 26], languages: ['Finnish', 'Swedish'], currencies: [{ code: 'EUR', name: 'Euro', symbol: '€' }],
          timezones: ['UTC+02:00'], borders: ['NOR', 'SWE', 'RUS'], flag_url: 'https://flagcdn.com/fi.svg',
        },
      ],
    },
  }
}
