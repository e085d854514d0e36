/**
 * Countries by the names that people use, against a source that searches the long ISO names for a
 * text as it is, as countries.dev does. The records are names, alternative spellings and
 * populations of its data model (REST Countries, v2).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import countries from '../../src/upstreams/countries.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { completed, contextAt, endpointAt } from '../support/upstream-call.ts'

type Row = [string, string, number, string, string, string[]]

const rows: Row[] = JSON.parse(readFileSync(new URL('../support/country-records.json', import.meta.url), 'utf8'))
const records = rows.map(([alpha2Code, name, population, region, subregion, altSpellings]) => ({
  ...{ alpha2Code, name, population, region, subregion, altSpellings },
}))

/** The alpha-2 codes of the countries that an endpoint finds for a name. */
function codesFor(path: '/name' | '/info', given: string): (string | undefined)[] {
  const endpoint = endpointAt(countries, path)
  const context = contextAt(endpoint)
  const parameters = completed(endpoint, { name: given }, context)
  const [request] = [endpoint.request(parameters, context)].flat()
  const read = interpretAnswers({ upstream: countries, endpoint }, [answerTo(request?.path ?? '')], {
    parameters,
    context,
  })
  if (!('data' in read)) {
    assert.equal(read.responseClass.code, 'UPSTREAM_NOT_FOUND', given)
    return []
  }
  if (path === '/name') return (read.data.results as { alpha2: string }[]).map(({ alpha2 }) => alpha2)
  return [records.find(({ name }) => name === read.data.name)?.alpha2Code]
}

function answerTo(path: string) {
  const [, route, segment = ''] = path.split('/')
  const text = decodeURIComponent(segment)
  const found =
    route === 'alpha'
      ? records.find(({ alpha2Code }) => alpha2Code === text)
      : records.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
  const isNone = found === undefined || (Array.isArray(found) && found.length === 0)
  return { status: isNone ? 404 : 200, headers: {}, body: isNone ? { error: 'Country not found' } : found }
}

/** Every country by the long name of ISO, and by the English name of Unicode's locale data. */
const english = new Intl.DisplayNames('en', { type: 'region' })
const namesOfAll = records.flatMap(({ alpha2Code, name }): [string, string][] => [
  [name, alpha2Code],
  [english.of(alpha2Code) ?? name, alpha2Code],
])

// biome-ignore format: a list to look through
const otherNames: [string, string][] = [
  ['São Tomé and Príncipe', 'ST'], ['Republic of the Congo', 'CG'], ['Caribbean Netherlands', 'BQ'], ['Pitcairn Islands', 'PN'],
  ['British Virgin Islands', 'VG'], ['United States Virgin Islands', 'VI'], ['French Southern and Antarctic Lands', 'TF'],
  ['The Gambia', 'GM'], ['The Bahamas', 'BS'], ['The Netherlands', 'NL'], ['the philippines', 'PH'], ['Curacao', 'CW'], ['Reunion', 'RE'],
  ['Aland Islands', 'AX'], ["Cote d'Ivoire", 'CI'], ['Côte d’Ivoire', 'CI'], ['St. Lucia', 'LC'], ['England', 'GB'], ["People's Republic of China", 'CN'],
  ['Republic of Ireland', 'IE'], ['Republic of China', 'TW'], ['Republic of Korea', 'KR'], ["Democratic People's Republic of Korea", 'KP'],
  ['Korea', 'KR'], ['DR Congo', 'CD'], ['Democratic Republic of Congo', 'CD'], ['the Democratic Republic of the Congo', 'CD'], ['Congo-Brazzaville', 'CG'],
  ['America', 'US'], ['the US', 'US'], ['U.S.A.', 'US'], ['United States', 'US'], ['the UK', 'GB'], ['U.K.', 'GB'], ['Britain', 'GB'], ['Great Britain', 'GB'],
  ['Northern Ireland', 'GB'], ['Scotland', 'GB'], ['Macedonia', 'MK'], ['Czechia', 'CZ'], ['Holland', 'NL'], ['Burma', 'MM'], ['Swaziland', 'SZ'],
  ['Eswatini', 'SZ'], ['Türkiye', 'TR'], ['TURKIYE', 'TR'], ['Viet Nam', 'VN'], ['Macau', 'MO'], ['Cape Verde', 'CV'], ['East Timor', 'TL'],
  ['Timor Leste', 'TL'], ['Ivory Coast', 'CI'], ['Holy See', 'VA'], ['Vatican', 'VA'], ['Russia', 'RU'], ['Syria', 'SY'], ['Laos', 'LA'], ['Brunei', 'BN'],
  ['México', 'MX'], ['Perú', 'PE'], ['Panamá', 'PA'], ['Saint Kitts & Nevis', 'KN'], ['St Vincent and the Grenadines', 'VC'], ['St.Lucia', 'LC'],
  ['Trinidad & Tobago', 'TT'], ['Bosnia', 'BA'], ['Bosnia-Herzegovina', 'BA'], ['Antigua', 'AG'], ['Guinea Bissau', 'GW'], ['Dem. Rep. Congo', 'CD'],
  ['Dominican Rep.', 'DO'], ['Central African Rep.', 'CF'], ['Eq. Guinea', 'GQ'], ['S. Sudan', 'SS'], ['N. Korea', 'KP'], ['Solomon Is.', 'SB'],
  ['Kingdom of Spain', 'ES'], ['Federal Republic of Germany', 'DE'], ['French Republic', 'FR'], ['Commonwealth of Dominica', 'DM'],
  ['Republic of Guinea', 'GN'], ['Republic of the Niger', 'NE'], ['Sultanate of Oman', 'OM'], ['Republic of Mali', 'ML'], ['Kingdom of the Netherlands', 'NL'],
  ['Guinea', 'GN'], ['Niger', 'NE'], ['Congo', 'CG'], ['Samoa', 'WS'], ['Georgia', 'GE'], ['Dominica', 'DM'], ['Ireland', 'IE'], ['Sudan', 'SD'], ['China', 'CN'],
  ['India', 'IN'], ['Mali', 'ML'], ['Somalia', 'SO'], ['Oman', 'OM'], ['Romania', 'RO'], ['Jersey', 'JE'], ['Cuba', 'CU'], ['Micronesia', 'FM'],
  ['Papua', 'PG'], ['Finl', 'FI'], ['NZ', 'NZ'], ['GB', 'GB'], ['N. Ireland', 'GB'], ['Gaza', 'PS'], ['Cote d Ivoire', 'CI'], ['La Réunion', 'RE'],
  ['Gambia, The', 'GM'], ['Korea, Rep.', 'KR'], ["Korea, Dem. People's Rep.", 'KP'], ['Egypt, Arab Rep.', 'EG'], ['Yemen, Rep.', 'YE'],
  ['Congo, Rep.', 'CG'], ['Congo, Dem. Rep.', 'CD'], ['Congo, Democratic Republic of the', 'CD'], ['Micronesia, Fed. Sts.', 'FM'], ['Venezuela, RB', 'VE'],
  ['Ireland, Republic of', 'IE'], ['China, Republic of', 'TW'], ['Sudan, South', 'SS'], ['Samoa, American', 'AS'], ['Guinea, Equatorial', 'GQ'],
  ['Eswatini (Swaziland)', 'SZ'], ['Czechia (Czech Republic)', 'CZ'], ['Burma (Myanmar)', 'MM'], ['United States (USA)', 'US'],
  ['Gambia (the)', 'GM'], ['Congo (the)', 'CG'], ['Congo (the Democratic Republic of the)', 'CD'], ['Niger (the)', 'NE'], ['Sudan (the)', 'SD'],
  ['United States of America (the)', 'US'], ['United Kingdom of Great Britain and Northern Ireland (the)', 'GB'], ['Moldova (the Republic of)', 'MD'],
  ['Cocos (Keeling) Islands (the)', 'CC'], ['Falkland Islands (the) [Malvinas]', 'FK'], ['Western Sahara*', 'EH'], ['Bahamas (The)', 'BS'],
  ['Netherlands (Kingdom of the)', 'NL'], ['Taiwan (Province of China)', 'TW'], ['Taiwan, Province of China', 'TW'], ['Korea Republic', 'KR'],
  ['Korea DPR', 'KP'], ['IR Iran', 'IR'], ['Falkland Islands (Islas Malvinas)', 'FK'], ['P.R. China', 'CN'], ['Gaza Strip', 'PS'],
  ['Br. Indian Ocean Ter.', 'IO'], ['Antigua and Barb.', 'AG'], ['N. Mariana Is.', 'MP'], ['Congo [DRC]', 'CD'], ['Congo [Republic]', 'CG'], ['Korea [North]', 'KP'], ['Myanmar [Burma]', 'MM'], ['Niger [1]', 'NE'], ['Niger [note 1]', 'NE'],
  ['U. S. A.', 'US'], ['U. K.', 'GB'], ['D. R. Congo', 'CD'], ['Faeroes', 'FO'], ['Fr. S. Antarctic Lands', 'TF'], ['S. Geo. and the Is.', 'GS'],
  ['South-Africa', 'ZA'], ['sri-lanka', 'LK'], ['El‐Salvador', 'SV'], ['Saint-Pierre and Miquelon', 'PM'], ['Guinea-Biss', 'GW'], ['S.Korea', 'KR'], ['N.Korea', 'KP'],
  ['Lao People’s Democratic Republic', 'LA'], ['Bonaire Sint Eustatius and Saba', 'BQ'], ['Saint Helena, Ascension, and Tristan da Cunha', 'SH'],
  ['Svalbard and Jan Mayen Islands', 'SJ'], ['Palestinian Territory, Occupied', 'PS'], ['Occupied Palestinian Territory', 'PS'], ['Hong Kong, China', 'HK'],
  ['China PR', 'CN'], ['Aotearoa New Zealand', 'NZ'], ['New Zealand (Aotearoa)', 'NZ'], ['Ireland {Republic}', 'IE'], ['Congo {Democratic Rep}', 'CD'],
  ['Pitcairn, Henderson, Ducie and Oeno Islands', 'PN'], ['Cape Verde Islands', 'CV'], ['Libyan Arab Jamahiriya', 'LY'], ['Fin', 'FI'],
  ['Ｊａｐａｎ', 'JP'], ['ﬁnland', 'FI'], ['Guinea‑Bissau', 'GW'],
]

test('/info and /name find each country by all its names, in every spelling', () => {
  assert.equal(records.length, 250)
  const wrong: string[] = []
  for (const [name, code] of [...namesOfAll, ...otherNames]) {
    for (const written of new Set([name, name.toUpperCase(), `the ${name}`, withoutAccents(name)])) {
      const [info] = codesFor('/info', written)
      if (info !== code) wrong.push(`/info ${written}: ${info}`)
      if (!codesFor('/name', written).includes(code)) wrong.push(`/name ${written}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('a text that does not name a country finds no country', () => {
  // biome-ignore format: a list to look through
  const texts = [
    'Africa', 'Europe', 'Asia', 'Polynesia', 'American', 'British', 'Indian', 'French', 'Dutch', 'Islands', 'island', 'Republic', 'Saint', 'South', 'the',
    'State of Georgia', 'Americ', 'Ind', 'an', 'and', 'de', 'Deutschland', 'Northern Cyprus', 'Somaliland', 'Soviet Union', 'Czechoslovakia', 'enmar', 'gola', 'SV', 'BH', 'PRI', 'Dominican',
    'African', 'United', 'Kingdom', 'Great', 'United Islands', '*', 'Samoa [American]', 'Guinea [Equatorial]', 'Sudan [South]',
  ]
  for (const text of texts) assert.deepEqual(codesFor('/info', text), [], text)
})

test('a search for a name also finds the other countries whose name contains it', () => {
  assert.deepEqual(codesFor('/name', 'Guinea').sort(), ['GN', 'GQ', 'GW', 'PG'])
  assert.deepEqual(codesFor('/name', 'America').sort(), ['AS', 'US'])
  assert.deepEqual(codesFor('/name', 'korea').sort(), ['KP', 'KR'])
  assert.deepEqual(codesFor('/name', 'Atlantis'), [])
})

function withoutAccents(name: string): string {
  return name.normalize('NFD').replace(/\p{M}/gu, '')
}
