import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { isObject, items, members, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid, overLimit, type ResponseClass, rejected } from '../catalog/response-class.ts'
import { defaulted, otherNames } from '../catalog/shared-parameters.ts'
import {
  type CallContext,
  type Caps,
  endpoint,
  path,
  trimmed,
  type Upstream,
  type UpstreamResponse,
} from '../catalog/upstream.ts'

// Limits hold per key. The free plan has 100 calls a UTC day; calls 1.5 s apart are refused, calls
// 5 s apart are not.
const freePlan: Caps = {
  concurrency: 1,
  rates: [
    { max: 1, seconds: 5 },
    { max: 100, seconds: 86_400 },
  ],
}

const maximum = defaulted(Type.Integer({ minimum: 1, maximum: 10, default: 5, description: 'Articles in the answer' }))

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
    image: field.text('image', 'URL of a picture'),
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

const newsApi: Upstream = {
  displayName: 'News',
  category: 'news',
  description: 'Top headlines by category and language, and search in news articles, from GNews.',
  tags: ['news', 'headlines', 'articles', 'search', 'media'],
  keywords: ['breaking', 'press', 'newspaper', 'journalism', 'politics'],
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
    check: { path: path`/api/v4/top-headlines`, query: { category: 'general', lang: 'en', max: 1 } },
  },
  caps: freePlan,
  // A probe with a key is one of 100 calls a day; without one, the refusal shows that the service
  // is up.
  probe: {
    request: { path: path`/api/v4/top-headlines`, query: { category: 'general', lang: 'en', max: 1 } },
    everySeconds: 21_600,
  },
  reservedParameters: ['apikey', 'token'],
  mayLack: ['description', 'image', 'content'],
  classify,
  endpoints: {
    '/top': endpoint({
      description: 'Top headlines by category and language.',
      parameters: Type.Object({
        category: Type.Optional(
          Type.Enum(
            ['general', 'world', 'nation', 'business', 'technology', 'entertainment', 'sports', 'science', 'health'],
            { description: 'Kind of headlines; default: general' },
          ),
        ),
        lang: defaulted(
          Type.String({
            minLength: 2,
            maxLength: 2,
            pattern: '^[A-Za-z]{2}$',
            default: 'en',
            description: 'Two-letter language code',
          }),
        ),
        max: maximum,
      }),
      aliases: { max: otherNames('count', 'max') },
      data: news.schema,
      cache,
      complete: ({ max, lang, category }) => ({
        max,
        lang: lang.toLowerCase(),
        category: category ?? 'general',
      }),
      // The upstream has other defaults than ours: everything is said.
      request: ({ max, lang, category }) => ({
        path: path`/api/v4/top-headlines`,
        query: { category, lang, max },
      }),
      map: ({ body }) => news.read(body) ?? invalid(),
      example: recordedTop(),
    }),
    '/search': endpoint({
      description: 'Search in the titles and descriptions of news articles in English.',
      parameters: Type.Object({
        q: Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'Words, "quoted phrases", AND, OR, NOT and parentheses',
        }),
        max: maximum,
      }),
      aliases: { q: otherNames('query', 'q'), max: otherNames('count', 'max') },
      data: news.schema,
      cache,
      complete: ({ q, max }) => ({ q: trimmed('q', q), max }),
      request: ({ q, max }) => ({ path: path`/api/v4/search`, query: { q, lang: 'en', max } }),
      rejects: [400],
      map: ({ body }) => news.read(body) ?? invalid(),
      example: recordedSearch(),
    }),
  },
}

export default newsApi

/** Here 403 is the day's quota and 429 a burst; neither comes with a Retry-After. */
function classify({ status, headers, body }: UpstreamResponse): ResponseClass | undefined {
  if (status === 403) return overLimit(msToNextUtcDay(headers.date))
  if (status === 429 && headers['retry-after'] === undefined) return overLimit(BURST_PAUSE_MS)
  const { errors } = members(body)
  if (status === 400 && isObject(errors) && 'q' in errors)
    return rejected('The syntax of q is wrong: quote phrases and use AND, OR and NOT between words.')
  return undefined
}

/** The quota begins anew at 00:00 UTC. */
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

function recordedTop() {
  return {
    parameters: { category: 'general' as const, lang: 'ru', max: 10 },
    responseFor: ({ category, lang, max }: { category?: string; lang: string; max: number }, response: unknown) =>
      category === 'general' && lang === 'ru' ? withFewer(response, max) : undefined,
    // biome-ignore format: as recorded
    response: {
      information: { realTimeArticles: { message: 'Real-time news data is only available on paid plans. Free plan has a 12-hour delay. Upgrade your plan here to remove the delay: https://gnews.io/change-plan' } },
      totalArticles: 224598,
      articles: [{
        id: '145dda464834624cd3ea459265e401ed',
        title: 'Балтия лишилась военной поддержки США, - Reuters',
        description: 'США намерены пересмотреть приоритеты военной помощи странам Балтии, что вызывает тревогу среди европейских дипломатов и экспертов по безопасности....',
        content: 'В конце августа представители Пентагона на встрече с европейскими дипломатами заявили о планах ограничить поддержку в сфере безопасности Латвии, Литвы и Эстонии. Чиновник Дэвид Бейкер подчеркнул, что Европе необходимо снизить зависимость от США, а ам... [1422 chars]',
        url: 'https://www.rbc.ua/ukr/news/tramp-skorochue-viyskovu-dopomogu-latviyi-1758422849.html',
        image: 'https://www.rbc.ua/static/img/_/g/_gettyimages_2204103483__1__bad664a7c82a12a29584baaca6963351_1300x820.jpg',
        publishedAt: '2025-09-21T03:10:00Z',
        lang: 'ru',
        source: { id: '6f1ead09126f1f4738a48957e22f789c', name: 'РБК-Україна', url: 'https://www.rbc.ua', country: 'ua' },
      }],
    },
    // biome-ignore format: as recorded
    data: {
      total: 224598,
      articles: [{
        id: '145dda464834624cd3ea459265e401ed',
        title: 'Балтия лишилась военной поддержки США, - Reuters',
        description: 'США намерены пересмотреть приоритеты военной помощи странам Балтии, что вызывает тревогу среди европейских дипломатов и экспертов по безопасности....',
        content: 'В конце августа представители Пентагона на встрече с европейскими дипломатами заявили о планах ограничить поддержку в сфере безопасности Латвии, Литвы и Эстонии. Чиновник Дэвид Бейкер подчеркнул, что Европе необходимо снизить зависимость от США, а ам... [1422 chars]',
        url: 'https://www.rbc.ua/ukr/news/tramp-skorochue-viyskovu-dopomogu-latviyi-1758422849.html',
        image: 'https://www.rbc.ua/static/img/_/g/_gettyimages_2204103483__1__bad664a7c82a12a29584baaca6963351_1300x820.jpg',
        published_at: '2025-09-21T03:10:00Z',
        lang: 'ru',
        source: { id: '6f1ead09126f1f4738a48957e22f789c', name: 'РБК-Україна', url: 'https://www.rbc.ua', country: 'ua' },
      }],
    },
  }
}

function recordedSearch() {
  return {
    parameters: { q: 'google', max: 10 },
    responseFor: ({ q, max }: { q: string; max: number }, response: unknown) =>
      q === 'google' ? withFewer(response, max) : undefined,
    // biome-ignore format: as recorded
    response: {
      totalArticles: 54904,
      articles: [{
        title: "Google's Pixel 7 and 7 Pro’s design gets revealed even more with fresh crisp renders",
        description: "Now we have a complete image of what the next Google flagship phones will look like. All that's left now is to welcome them during their October announcement!",
        content: 'Google’s highly anticipated upcoming Pixel 7 series is just around the corner, scheduled to be announced on October 6, 2022, at 10 am EDT during the Made by Google event. Well, not that there is any lack of images showing the two new Google phones, b... [1419 chars]',
        url: 'https://www.phonearena.com/news/google-pixel-7-and-pro-design-revealed-even-more-fresh-renders_id142800',
        image: 'https://m-cdn.phonearena.com/images/article/142800-wide-two_1200/Googles-Pixel-7-and-7-Pros-design-gets-revealed-even-more-with-fresh-crisp-renders.jpg',
        publishedAt: '2022-09-28T08:14:24Z',
        source: { name: 'PhoneArena', url: 'https://www.phonearena.com' },
      }],
    },
    // biome-ignore format: as recorded
    data: {
      total: 54904,
      articles: [{
        id: null,
        title: "Google's Pixel 7 and 7 Pro’s design gets revealed even more with fresh crisp renders",
        description: "Now we have a complete image of what the next Google flagship phones will look like. All that's left now is to welcome them during their October announcement!",
        content: 'Google’s highly anticipated upcoming Pixel 7 series is just around the corner, scheduled to be announced on October 6, 2022, at 10 am EDT during the Made by Google event. Well, not that there is any lack of images showing the two new Google phones, b... [1419 chars]',
        url: 'https://www.phonearena.com/news/google-pixel-7-and-pro-design-revealed-even-more-fresh-renders_id142800',
        image: 'https://m-cdn.phonearena.com/images/article/142800-wide-two_1200/Googles-Pixel-7-and-7-Pros-design-gets-revealed-even-more-with-fresh-crisp-renders.jpg',
        published_at: '2022-09-28T08:14:24Z',
        lang: null,
        source: { id: null, name: 'PhoneArena', url: 'https://www.phonearena.com', country: null },
      }],
    },
  }
}
