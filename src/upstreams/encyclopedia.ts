import { field, record, required } from '../catalog/fields.ts'
import { members, text, webAddress } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter, trimmed } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { failed } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/encyclopedia.json' with { type: 'json' }

const ORIGIN = 'https://en.wikipedia.org'

const TITLE_BYTES_MAX = 255

const summary = record({
  title: required.text('title', 'After redirects'),
  description: field.text('description', 'A few words'),
  extract: field.text('extract', 'Plain text; "X may refer to:" on a disambiguation page'),
  page_url: field.text('content_urls.desktop.page', 'Page of the article'),
  thumbnail_url: field.text(({ thumbnail }) => sourceOf(thumbnail), 'Small picture of the article'),
  type: field.text('type', 'standard, disambiguation, no-extract or mainpage'),
  page_id: field.integer('pageid', 'Number of the page'),
  wikidata_id: field.text('wikibase_item', 'Id of the subject at Wikidata'),
  lang: field.text('lang', 'Language of the article, ISO 639-1'),
  updated_at: field.text('timestamp', 'ISO 8601'),
  image_url: field.text(({ originalimage }) => sourceOf(originalimage), 'Picture of the article in full size'),
  coordinates: field.nullableRecord('coordinates', 'Place of the subject, if it has a place', {
    lat: required.number('lat', 'Degrees north'),
    lon: required.number('lon', 'Degrees east'),
  }),
})

export default upstream({
  displayName: 'Encyclopedia',
  category: 'knowledge',
  description: 'Summaries of the pages of the English Wikipedia: extract, description, image and coordinates.',
  tags: ['encyclopedia', 'wikipedia', 'knowledge', 'summary', 'reference'],
  keywords: words('wiki article biography history person born famous who explain landmark tower monument'),
  terms: {
    summary: 'Text under CC BY-SA 4.0: show "Wikipedia" with a link to the page. Images have licences of their own.',
    url: 'https://foundation.wikimedia.org/wiki/Policy:Terms_of_Use',
    licence: 'https://creativecommons.org/licenses/by-sa/4.0/',
    attribution: 'Wikipedia',
  },
  baseUrl: ORIGIN,
  headers: { accept: 'application/json; charset=utf-8; profile="https://www.mediawiki.org/wiki/Specs/Summary/1.5.0"' },
  credential: { accessMode: 'platform_managed', in: 'header', name: 'authorization', format: (key) => `Bearer ${key}` },
  // The upstream asks for at most 3 requests at once. With a contact in the User-Agent it allows
  // 200 a minute, otherwise 10.
  caps: { concurrency: 3, rates: [{ max: 60, seconds: 60 }] },
  contact: {
    rule: 'Wikimedia allows 10 requests a minute to clients that name no contact in the User-Agent',
    capsWithout: { concurrency: 3, rates: [{ max: 10, seconds: 60 }] },
  },
  // A title that stands for another page leads there, `UK` to `United_Kingdom`.
  redirectsMax: 2,
  probe: { request: { path: path`/api/rest_v1/page/summary/Earth` }, everySeconds: 300 },
  // This parameter would turn a redirecting page into an answer of its own.
  reservedParameters: words('redirect'),
  mayLack: words('description thumbnail_url image_url wikidata_id'),
  endpoints: {
    '/summary': endpoint({
      description: 'Summary of the lead section of a page.',
      parameters: {
        title: param.text('Title of the page; the first letter may be of either case, the others may not', {
          maxLength: TITLE_BYTES_MAX,
          pattern: '^[^#<>\\[\\]|{}]+$',
          normalize: canonicalTitle,
          aliases: namesOf.query,
        }),
      },
      data: summary,
      cache: { ...freshFor(lifetime.day), staleIfErrorSeconds: lifetime.month, notFoundSeconds: lifetime.hour },
      request: ({ title }) => ({ path: path`/api/rest_v1/page/summary/${title}` }),
      isNotFound,
      rejects: [400],
      // The type of a problem is an address, and its title is a sentence about the failure.
      readFrom: ({ body }) => (text(members(body).type)?.includes(':') ? failed() : body),
      example: recordings['/summary'],
    }),
  },
})

function sourceOf(picture: unknown): string | null {
  return webAddress(members(picture).source, ORIGIN)
}

/**
 * An unknown title has the first form, until about 2025 the second, which an unknown route has
 * without the detail.
 */
function isNotFound({ body }: UpstreamResponse): boolean {
  const { status, type, detail } = members(body)
  return (status === 404 && type === 'Internal error') || detail === 'Page or revision not found.'
}

/**
 * The title as the upstream spells it in its paths; another spelling would be answered with a
 * redirect.
 */
function canonicalTitle(parameter: string, title: string): string {
  const joined = trimmed(parameter, title.replaceAll('_', ' ')).replace(/\s+/g, '_')
  const [first = ''] = joined
  const upper = first.toUpperCase()
  // Letters such as ß, which become two, are left as they are.
  const canonical = [...upper].length === 1 ? upper + joined.slice(first.length) : joined
  if (new TextEncoder().encode(canonical).length > TITLE_BYTES_MAX) {
    throw new InvalidParameter(parameter, `it is longer than ${TITLE_BYTES_MAX} bytes`)
  }
  return canonical
}
