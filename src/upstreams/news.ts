import type { CallContext } from '../catalog/endpoint.ts'
import { field, record, required } from '../catalog/fields.ts'
import { items, members, text, webAddress } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { lowerCased, trimmed } from '../catalog/parameter-values.ts'
import { namesOf, optional, param } from '../catalog/parameters.ts'
import { overLimit, type ResponseClass, rejected } from '../catalog/response-class.ts'
import type { Caps } from '../catalog/upstream.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/news.json' with { type: 'json' }

// Limits hold per key. The free plan has 100 calls a UTC day; calls 1.5 s apart are refused, calls
// 5 s apart are not.
const freePlan: Caps = {
  concurrency: 1,
  rates: [
    { max: 1, seconds: 5 },
    { max: 100, seconds: 86_400 },
  ],
}

const maximum = param.integer('Articles in the answer', { minimum: 1, maximum: 10, default: 5, aliases: namesOf.count })

const cache = { seconds: secondsFresh, staleWhileRevalidateSeconds: 900, staleIfErrorSeconds: lifetime.day }

const BURST_PAUSE_MS = 5_000

const DAY_MS = 86_400_000

const OLD_NEWS_MS = 11 * 3_600_000

const news = record({
  total: field.integer('totalArticles', 'Matching articles, of which the answer holds the first'),
  articles: required.records('articles', 'Articles', {
    id: field.text('id', 'Id of the article'),
    title: field.text('title', 'Headline'),
    description: field.text('description', 'First lines or summary'),
    content: field.text('content', 'Cut short on the free plan'),
    url: field.text('url', 'Page of the article'),
    image: field.text(({ image, url }) => webAddress(image, url), 'URL of a picture'),
    published_at: field.text('publishedAt', 'ISO 8601, UTC'),
    lang: field.text('lang', 'Language of the article, ISO 639-1'),
    source: field.record('source', 'Publication', {
      id: field.text('id', 'Id of the publication'),
      name: field.text('name', 'Name of the publication'),
      url: field.text('url', 'Website of the publication'),
      country: field.text('country', 'Country of the publication, ISO 3166-1 alpha-2, lower case'),
    }),
  }),
})

export default upstream({
  displayName: 'News',
  category: 'news',
  description: 'Top headlines by category and language, and search in news articles, from GNews.',
  tags: ['news', 'headlines', 'articles', 'search', 'media'],
  keywords: words('breaking press newspaper journalism politics'),
  tierRequired: 'pro',
  terms: {
    nonCommercial: true,
    summary: 'Needs a GNews key; the free plan is non-commercial, 12 hours behind and cuts articles short.',
    url: 'https://gnews.io/pricing',
    attribution: 'News by GNews.io; show the name and link of each source',
  },
  baseUrl: 'https://gnews.io',
  credential: {
    accessMode: 'byok_available',
    required: true,
    in: 'query',
    name: 'apikey',
    caps: freePlan,
    check: {
      request: { path: path`/api/v4/top-headlines`, query: { category: 'general', lang: 'en', max: 1 } },
      isConclusive: true,
    },
  },
  caps: freePlan,
  // A probe with a key is one of 100 calls a day; without one, the refusal shows that the service
  // is up.
  probe: {
    request: { path: path`/api/v4/top-headlines`, query: { category: 'general', lang: 'en', max: 1 } },
    everySeconds: 21_600,
  },
  reservedParameters: words('apikey token'),
  mayLack: words('description image content'),
  classify,
  endpoints: {
    '/top': endpoint({
      description: 'Top headlines by category and language.',
      parameters: {
        category: optional(
          param.oneOf(
            ['general', 'world', 'nation', 'business', 'technology', 'entertainment', 'sports', 'science', 'health'],
            'Kind of headlines; default: general',
          ),
        ),
        lang: param.text('Two-letter language code', {
          minLength: 2,
          maxLength: 2,
          pattern: '^[A-Za-z]{2}$',
          default: 'en',
          normalize: lowerCased,
        }),
        max: maximum,
      },
      data: news,
      cache,
      complete: (parameters) => ({ ...parameters, category: parameters.category ?? 'general' }),
      // The upstream's defaults differ from ours, so every parameter is sent.
      request: ({ max, lang, category }) => ({ path: path`/api/v4/top-headlines`, query: { category, lang, max } }),
      // Two letters need not be one of its languages; category and number are checked.
      classify: ({ status, body }) =>
        status === 400 && 'lang' in errorsByParameter(body)
          ? rejected('The upstream has no headlines in this language.')
          : undefined,
      example: {
        ...recordings['/top'],
        responseFor: ({ category, lang, max }, response) =>
          category === 'general' && lang === 'ru' ? withFewer(response, max) : undefined,
      },
    }),
    '/search': endpoint({
      description: 'Search in the titles and descriptions of news articles in English.',
      parameters: {
        q: param.text('Words, "quoted phrases", AND, OR, NOT and parentheses', {
          maxLength: 200,
          normalize: trimmed,
          aliases: namesOf.query,
        }),
        max: maximum,
      },
      data: news,
      cache,
      request: ({ q, max }) => ({ path: path`/api/v4/search`, query: { q, lang: 'en', max } }),
      rejects: [400],
      example: {
        ...recordings['/search'],
        responseFor: ({ q, max }, response) => (q === 'google' ? withFewer(response, max) : undefined),
      },
    }),
  },
})

/** Here 403 is the day's quota and 429 a burst; neither comes with a Retry-After. */
function classify({ status, headers, body }: UpstreamResponse): ResponseClass | undefined {
  if (status === 403) return overLimit(msToNextUtcDay(headers.date))
  if (status === 429 && headers['retry-after'] === undefined) return overLimit(BURST_PAUSE_MS)
  if (status === 400 && 'q' in errorsByParameter(body))
    return rejected('The syntax of q is wrong: quote phrases and use AND, OR and NOT between words.')
  return undefined
}

/** Errors about parameters; empty if the errors are general, which come as a list. */
function errorsByParameter(body: unknown): Record<string, unknown> {
  return members(members(body).errors)
}

/** Milliseconds until the quota is reset at 00:00 UTC. */
function msToNextUtcDay(answered: string | undefined): number | undefined {
  const now = Date.parse(answered ?? '')
  return Number.isNaN(now) ? undefined : DAY_MS - (now % DAY_MS)
}

/**
 * A day's calls serve all callers together: 15 minutes keep one kind of headlines below 100 calls a
 * day. News half a day old belong to the free plan, or of a quiet subject: an hour more changes
 * little.
 */
function secondsFresh(_: unknown, data: Record<string, unknown>, { now }: CallContext): number {
  const times = items(data.articles).map((article) => Date.parse(text(members(article).published_at) ?? ''))
  return times.length > 0 && Math.max(...times) < now - OLD_NEWS_MS ? lifetime.hour : 900
}

function withFewer(response: unknown, max: number) {
  return { ...members(response), articles: items(members(response).articles).slice(0, max) }
}
