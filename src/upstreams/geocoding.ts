import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, isObject, members, nullable, number, numeric, text } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { singleSpaced } from '../catalog/parameter-values.ts'
import { latitude, longitude, namesOf, param } from '../catalog/parameters.ts'
import { failed, notFound, overLimit, type ResponseClass } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/geocoding.json' with { type: 'json' }

/** The usage policy demands caching, and places hardly ever move. */
const cache = { ...freshFor(lifetime.week), staleIfErrorSeconds: 4 * lifetime.week }

/** How long a refusal without a stated time is respected, milliseconds. */
const BLOCKED_MS = 60_000

const search = record({
  results: required.recordOfEach('results', 'Places found, best match first', {
    // House numbers have no name of their own.
    name: field.text(
      ({ name, display_name }) => filledText(name) ?? text(display_name)?.split(',')[0]?.trim(),
      'Name of the place, in English if OpenStreetMap has an English name, otherwise in its local language',
    ),
    display_name: field.text('display_name', 'Whole address in one line'),
    lat: field.numeric('lat', 'Degrees north'),
    lon: field.numeric('lon', 'Degrees east'),
    category: field.text((place) => text(place.category) ?? place.class, 'OpenStreetMap key, `place`'),
    type: field.text('type', 'OpenStreetMap value, `city`'),
    importance: field.numeric('importance', '0 to 1'),
    country: field.text('address.country', 'Name of the country'),
    country_code: field.text('address.country_code', 'ISO 3166-1 alpha-2, lower case'),
    bounding_box: field.nullableRecord(
      ({ boundingbox }) => edgesOf(boundingbox),
      'Smallest rectangle around the place',
      {
        south: field.numeric('south', 'Southern edge, degrees north'),
        north: field.numeric('north', 'Northern edge, degrees north'),
        west: field.numeric('west', 'Western edge, degrees east'),
        east: field.numeric('east', 'Eastern edge, degrees east'),
      },
    ),
    osm_type: field.text('osm_type', 'node, way or relation'),
    osm_id: field.wholeNumber(({ osm_id }) => numeric(osm_id), 'With osm_type a stable name of the object'),
    address: field.computed(
      nullable(
        Type.Record(
          Type.String(),
          Type.Unknown({ description: 'Part of the address, in English as far as it is known' }),
          {
            description: 'Parts of the address, keyed by OpenStreetMap names such as road or city',
          },
        ),
      ),
      ({ address }) => (isObject(address) ? address : null),
    ),
  }),
})

const nearest = record({
  city: field.text(({ address }) => settlement(members(address)), 'City, town, village or what comes nearest to one'),
  country: field.text('address.country', 'Name of the country'),
  postcode: field.text('address.postcode', 'Postal code'),
  country_code: field.text('address.country_code', 'ISO 3166-1 alpha-2, lower case'),
  display_name: required.notNull(field.text('display_name', 'Whole address in one line')),
  lat: field.numeric('lat', 'Of the object found'),
  lon: field.numeric('lon', 'Of the object found, degrees east'),
  state: field.text('address.state', 'State, province or region'),
  road: field.text('address.road', 'Name of the street'),
  house_number: field.text('address.house_number', 'House number'),
})

export default upstream({
  displayName: 'Geocoding',
  category: 'geography',
  description: 'Place names and addresses to coordinates and back, from OpenStreetMap data (Nominatim).',
  tags: ['geocoding', 'address', 'coordinates', 'reverse-geocoding', 'openstreetmap', 'map'],
  keywords: words('street city place postcode zip latitude longitude map location landmark tower'),
  terms: {
    summary:
      'Data under ODbL. The public server forbids reselling, auto-complete and systematic queries: an operator who offers geocoding to others sets the address of an own Nominatim.',
    url: 'https://operations.osmfoundation.org/policies/nominatim/',
    licence: 'https://opendatacommons.org/licenses/odbl/1-0/',
    attribution: '© OpenStreetMap contributors, https://www.openstreetmap.org/copyright',
  },
  baseUrl: 'https://nominatim.openstreetmap.org',
  // The policy's absolute maximum, for all users of an application together, on a single thread.
  caps: { concurrency: 1, rates: [{ max: 1, seconds: 1 }] },
  contact: { rule: 'Nominatim asks for a contact in the User-Agent and may block clients that name none' },
  // The policy grants scheduled requests 4 a minute; this request does not touch the search.
  probe: { request: { path: path`/status`, query: { format: 'json' } }, everySeconds: 300 },
  // Debug pages and callbacks are not JSON. Paid servers of the same kind accept a key.
  reservedParameters: words('debug json_callback key'),
  mayLack: words(
    'name city postcode state road house_number bounding_box country country_code importance osm_type osm_id',
  ),
  classify: classifyRefusal,
  endpoints: {
    '/search': endpoint({
      description: 'Coordinates of a place name or address, best match first.',
      parameters: {
        q: param.text('Place name or address, in any language', { normalize: singleSpaced, aliases: namesOf.query }),
        limit: param.integer('Maximum number of results', {
          minimum: 1,
          maximum: 10,
          default: 5,
          aliases: namesOf.count,
        }),
      },
      data: search,
      cache: { ...cache, key: ({ q, limit }) => ({ q: q.toLowerCase(), limit }) },
      request: ({ q, limit }) => ({
        path: path`/search`,
        query: { q, format: 'jsonv2', addressdetails: 1, limit, 'accept-language': 'en' },
      }),
      rejects: [400],
      readFrom: ({ body }) => ({ results: body }),
      example: recordings['/search'],
    }),

    '/reverse': endpoint({
      description: 'Address of the mapped object nearest to coordinates.',
      parameters: { lat: latitude, lon: longitude },
      data: nearest,
      cache: {
        ...cache,
        // "Not found" is stored too, because one call a second is too scarce to ask twice about the
        // open sea.
        notFoundSeconds: lifetime.day,
        // Five decimals are about one metre.
        key: ({ lat, lon }) => ({ lat: lat.toFixed(5), lon: lon.toFixed(5) }),
      },
      request: ({ lat, lon }) => ({
        path: path`/reverse`,
        query: { lat, lon, format: 'jsonv2', addressdetails: 1, 'accept-language': 'en' },
      }),
      readFrom: ({ body }) => {
        const { error } = members(body)
        if (error === 'Unable to geocode') return notFound('There is no address at these coordinates.')
        return error === undefined ? body : failed()
      },
      example: recordings['/reverse'],
    }),
  },
})

function classifyRefusal({ status, headers, body }: UpstreamResponse): ResponseClass | undefined {
  // There are no keys, so a 403 comes from the limiter. A web page in place of JSON does too.
  if (status === 403 && headers['retry-after'] === undefined) return overLimit(BLOCKED_MS)
  if (status === 200 && body === undefined && headers['content-type']?.includes('html')) return overLimit(BLOCKED_MS)
  // The probe's answer has the status 200 even if the database has a problem.
  const condition = number(members(body).status)
  return status === 200 && condition !== null && condition !== 0 ? failed() : undefined
}

function edgesOf(box: unknown): Source | undefined {
  if (!Array.isArray(box)) return undefined
  const [south, north, west, east] = box
  return { south, north, west, east }
}

/** The place for the address on a letter; what it is called depends on its size and country. */
function settlement(address: Source): string | null {
  for (const kind of ['city', 'town', 'village', 'municipality', 'hamlet', 'suburb', 'county']) {
    const name = filledText(address[kind])
    if (name !== null) return name
  }
  return null
}
