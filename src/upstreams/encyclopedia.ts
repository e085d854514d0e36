import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { endpoint, InvalidParameter, path, trimmed, type Upstream, type UpstreamResponse } from '../catalog/upstream.ts'

const TITLE_BYTES_MAX = 255

const summary = record({
  title: required.text('title', 'After redirects'),
  description: field.text('description', 'A few words'),
  extract: field.text('extract', 'Plain text; "X may refer to:" on a disambiguation page'),
  page_url: field.text('content_urls.desktop.page', 'Page of the article'),
  thumbnail_url: field.text('thumbnail.source', 'Small picture of the article'),
  type: field.text('type', 'standard, disambiguation, no-extract or mainpage'),
  page_id: field.integer('pageid', 'Number of the page'),
  wikidata_id: field.text('wikibase_item', 'Id of the subject at Wikidata'),
  lang: field.text('lang', 'Language of the article, ISO 639-1'),
  updated_at: field.text('timestamp', 'ISO 8601'),
  image_url: field.text('originalimage.source', 'Picture of the article in full size'),
  coordinates: field.nullableRecord('coordinates', 'Place of the subject, where it has one', {
    lat: required.number('lat', 'Degrees north'),
    lon: required.number('lon', 'Degrees east'),
  }),
})

const encyclopedia: Upstream = {
  displayName: 'Encyclopedia',
  category: 'knowledge',
  description: 'Summaries of the pages of the English Wikipedia: extract, description, image and coordinates.',
  tags: ['encyclopedia', 'wikipedia', 'knowledge', 'summary', 'reference'],
  keywords: ['wiki', 'article', 'biography', 'history', 'person', 'born', 'famous', 'who', 'explain'],
  tierRequired: 'developer',
  terms: {
    summary: 'Text under CC BY-SA 4.0: show "Wikipedia" with a link to the page. Images have licences of their own.',
    url: 'https://foundation.wikimedia.org/wiki/Policy:Terms_of_Use',
    licence: 'https://creativecommons.org/licenses/by-sa/4.0/',
    attribution: 'Wikipedia',
  },
  baseUrl: 'https://en.wikipedia.org',
  headers: { accept: 'application/json; charset=utf-8; profile="https://www.mediawiki.org/wiki/Specs/Summary/1.5.0"' },
  credential: {
    accessMode: 'platform_managed',
    required: false,
    in: 'header',
    name: 'authorization',
    format: (key) => `Bearer ${key}`,
  },
  // At most 3 at once is asked. Whoever has a contact in the User-Agent may send 200 a minute;
  // others 10.
  caps: { concurrency: 3, rates: [{ max: 60, seconds: 60 }] },
  contact: {
    rule: 'Wikimedia allows 10 requests a minute to those who name no contact in the User-Agent',
    capsWithout: { concurrency: 3, rates: [{ max: 10, seconds: 60 }] },
  },
  // A title that stands for another page leads there, `UK` to `United_Kingdom`.
  redirectsMax: 2,
  probe: { request: { path: path`/api/rest_v1/page/summary/Earth` }, everySeconds: 300 },
  // It turns a page that redirects into an answer of its own.
  reservedParameters: ['redirect'],
  mayLack: ['description', 'thumbnail_url', 'image_url', 'wikidata_id'],
  endpoints: {
    '/summary': endpoint({
      description: 'Summary of the lead section of a page.',
      parameters: Type.Object({
        title: Type.String({
          minLength: 1,
          maxLength: TITLE_BYTES_MAX,
          pattern: '^[^#<>\\[\\]|{}]+$',
          description: 'Title of the page; the first letter may be of either case, the others may not',
        }),
      }),
      aliases: { title: ['q', 'query'] },
      data: summary.schema,
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        notFoundSeconds: lifetime.hour,
      },
      complete: ({ title }) => ({ title: canonicalTitle(title) }),
      request: ({ title }) => ({ path: path`/api/rest_v1/page/summary/${title}` }),
      isNotFound,
      rejects: [400],
      map: ({ body }) => summary.read(body) ?? invalid(),
      example: recordedSummary(),
    }),
  },
}

export default encyclopedia

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
function canonicalTitle(title: string): string {
  const joined = trimmed('title', title.replaceAll('_', ' ')).replace(/\s+/g, '_')
  const [first = ''] = joined
  const upper = first.toUpperCase()
  // Letters such as ß, which become two, are left as they are.
  const canonical = [...upper].length === 1 ? upper + joined.slice(first.length) : joined
  if (new TextEncoder().encode(canonical).length > TITLE_BYTES_MAX) {
    throw new InvalidParameter('title', `it is longer than ${TITLE_BYTES_MAX} bytes`)
  }
  return canonical
}

function recordedSummary() {
  return {
    parameters: { title: 'Earth' },
    // biome-ignore format: as recorded
    response: {
      type: 'standard', title: 'Earth', displaytitle: '<span lang="en" dir="ltr"><span class="mw-page-title-main">Earth</span></span>',
      namespace: { id: 0, text: '' }, wikibase_item: 'Q2',
      titles: {
        canonical: 'Earth', normalized: 'Earth', display: '<span lang="en" dir="ltr"><span class="mw-page-title-main">Earth</span></span>',
      },
      pageid: 9228,
      thumbnail: {
        source: 'https://upload.wikimedia.org/wikipedia/commons/thumb/2/2d/Meteosat-12-fci-march-equinox-2025-noon.jpg/330px-Meteosat-12-fci-march-equinox-2025-noon.jpg',
        width: 330, height: 330,
      },
      originalimage: {
        source: 'https://upload.wikimedia.org/wikipedia/commons/thumb/2/2d/Meteosat-12-fci-march-equinox-2025-noon.jpg/3840px-Meteosat-12-fci-march-equinox-2025-noon.jpg',
        width: 12261, height: 12261,
      },
      lang: 'en', dir: 'ltr', revision: '1360670485', tid: 'f9748804-6e87-11f1-af09-5bfef6c9074c', timestamp: '2026-06-22T22:16:11Z',
      description: 'Third planet from the Sun', description_source: 'local',
      content_urls: {
        desktop: {
          page: 'https://en.wikipedia.org/wiki/Earth', revisions: 'https://en.wikipedia.org/wiki/Earth?action=history',
          edit: 'https://en.wikipedia.org/wiki/Earth?action=edit', talk: 'https://en.wikipedia.org/wiki/Talk:Earth',
        },
        mobile: {
          page: 'https://en.wikipedia.org/wiki/Earth', revisions: 'https://en.wikipedia.org/wiki/Special:History/Earth',
          edit: 'https://en.wikipedia.org/wiki/Earth?action=edit', talk: 'https://en.wikipedia.org/wiki/Talk:Earth',
        },
      },
      extract: "Earth is the third planet from the Sun and the only astronomical object known to harbor life. This is made possible by Earth being an ocean world, the only one in the Solar System sustaining liquid surface water. Almost all of Earth's water is contained in its ocean, which covers 70.8% of Earth's crust. The remaining 29.2% of Earth's crust is land, which is predominantly located within Earth's land hemisphere in the form of continental landmasses. Most of Earth's land is at least somewhat humid and covered by vegetation, while large ice sheets at Earth's polar deserts retain more water than Earth's groundwater, lakes, rivers, and atmospheric water combined. Earth's crust consists of slowly moving tectonic plates, which interact to produce mountain ranges, volcanoes, and earthquakes. Earth has a liquid outer core that generates a magnetosphere capable of deflecting most of the destructive solar winds and cosmic radiation.",
      extract_html: "<p><b>Earth</b> is the third planet from the Sun and the only astronomical object known to harbor life. This is made possible by Earth being an ocean world, the only one in the Solar System sustaining liquid surface water. Almost all of Earth's water is contained in its ocean, which covers 70.8% of Earth's crust. The remaining 29.2% of Earth's crust is land, which is predominantly located within Earth's land hemisphere in the form of continental landmasses. Most of Earth's land is at least somewhat humid and covered by vegetation, while large ice sheets at Earth's polar deserts retain more water than Earth's groundwater, lakes, rivers, and atmospheric water combined. Earth's crust consists of slowly moving tectonic plates, which interact to produce mountain ranges, volcanoes, and earthquakes. Earth has a liquid outer core that generates a magnetosphere capable of deflecting most of the destructive solar winds and cosmic radiation.</p>",
    },
    // biome-ignore format: as recorded
    data: {
      title: 'Earth', description: 'Third planet from the Sun',
      extract: "Earth is the third planet from the Sun and the only astronomical object known to harbor life. This is made possible by Earth being an ocean world, the only one in the Solar System sustaining liquid surface water. Almost all of Earth's water is contained in its ocean, which covers 70.8% of Earth's crust. The remaining 29.2% of Earth's crust is land, which is predominantly located within Earth's land hemisphere in the form of continental landmasses. Most of Earth's land is at least somewhat humid and covered by vegetation, while large ice sheets at Earth's polar deserts retain more water than Earth's groundwater, lakes, rivers, and atmospheric water combined. Earth's crust consists of slowly moving tectonic plates, which interact to produce mountain ranges, volcanoes, and earthquakes. Earth has a liquid outer core that generates a magnetosphere capable of deflecting most of the destructive solar winds and cosmic radiation.",
      page_url: 'https://en.wikipedia.org/wiki/Earth',
      thumbnail_url: 'https://upload.wikimedia.org/wikipedia/commons/thumb/2/2d/Meteosat-12-fci-march-equinox-2025-noon.jpg/330px-Meteosat-12-fci-march-equinox-2025-noon.jpg',
      type: 'standard', page_id: 9228, wikidata_id: 'Q2', lang: 'en', updated_at: '2026-06-22T22:16:11Z',
      image_url: 'https://upload.wikimedia.org/wikipedia/commons/thumb/2/2d/Meteosat-12-fci-march-equinox-2025-noon.jpg/3840px-Meteosat-12-fci-march-equinox-2025-noon.jpg',
      coordinates: null,
    },
  }
}
