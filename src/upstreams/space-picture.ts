import { dateIn, isCalendarDate } from '../catalog/calendar.ts'
import type { CallContext } from '../catalog/endpoint.ts'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, htmlDecoded, members, webAddress } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { optional, param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/space-picture.json' with { type: 'json' }

const FIRST_DATE = '1995-06-16'

const ORIGIN = 'https://science.nasa.gov'

const PLAYER = /<(?:iframe|source|video|embed)\b[^<>]*?\ssrc\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')/gi

/** The days by which the upstream publishes. */
const easternDate = dateIn('America/New_York')

const pictureOfTheDay = record({
  date: required.date('date', 'YYYY-MM-DD'),
  title: field.htmlDecoded('title', 'Title of the picture'),
  media_type: field.text('media_type', 'image, video or iframe'),
  url: field.text(
    (picture) => playerUrl(picture) ?? webAddress(filledText(picture.hdurl) ?? picture.url, ORIGIN),
    'The image; for a video or iframe its player, else a still, or the page when there is none',
  ),
  page_url: field.text('permalink', 'The article'),
  copyright: field.text(({ copyright }) => plainText(copyright), "Credit line, also of NASA's own pictures"),
  explanation: field.text(
    ({ explanation }) =>
      filledText(
        plainText(explanation)
          ?.replace(/^Explanation:\s*/, '')
          .replace(/\s*Tomorrow['’]?s picture\s*:.*$/i, ''),
      ),
    'Text by an astronomer about the picture',
  ),
  alt: field.htmlDecoded('alt', 'Description for people who do not see the picture'),
})

export default upstream({
  displayName: 'Space picture',
  category: 'science',
  description: 'The astronomy picture of the day with its explanation, for today or a date since 1995.',
  tags: ['space', 'astronomy', 'nasa', 'apod', 'image'],
  keywords: words('galaxy star planet telescope universe photo picture day moon'),
  terms: {
    summary:
      'NASA media are generally free to use; many pictures belong to their photographers. Show the copyright and link to the page.',
    url: 'https://www.nasa.gov/nasa-brand-center/images-and-media/',
    attribution: 'NASA Astronomy Picture of the Day',
  },
  baseUrl: ORIGIN,
  // No limit is published; one picture a day needs few requests.
  caps: { concurrency: 2, rates: [{ max: 30, seconds: 60 }] },
  probe: { request: { path: path`/wp-json/wp/v2/apod-basic`, query: { per_page: '1' } }, everySeconds: 300 },
  // What WordPress takes at every route, for authentication or for another form of the answer.
  reservedParameters: words('per_page context rest_route _fields _embed _envelope _jsonp _method _wpnonce'),
  mayLack: words('copyright alt url'),
  endpoints: {
    '/today': endpoint({
      description: 'Astronomy picture of the day: the latest, or that of a date.',
      parameters: {
        date: optional(
          param.text('YYYY-MM-DD, from 1995-06-16 to today (US Eastern); the latest picture when omitted', {
            minLength: 10,
            maxLength: 10,
            pattern: '^\\d{4}-\\d{2}-\\d{2}$',
            normalize: publishedDate,
          }),
        ),
      },
      data: pictureOfTheDay,
      cache: {
        // A new picture appears at 00:05 US Eastern; the pictures of past days stay.
        seconds: ({ date }, _, { now }) => (date === undefined || date === easternDate(now) ? 900 : lifetime.week),
        staleWhileRevalidateSeconds: 900,
        staleIfErrorSeconds: lifetime.day,
        notFoundSeconds: 300,
      },
      // The list does not filter by date: a date is a segment of the path, YYMMDD.
      request: ({ date }) =>
        date === undefined
          ? { path: path`/wp-json/wp/v2/apod-basic`, query: { per_page: '1' } }
          : { path: path`/wp-json/wp/v2/apod-basic/${date.slice(2).replaceAll('-', '')}` },
      isNotFound: ({ body }) => members(body).code === 'apod_basic_not_found',
      readFrom: ({ body, parameters: { date } }) => {
        const picture = members(Array.isArray(body) ? body[0] : body)
        return date === undefined || date === picture.date ? picture : undefined
      },
      example: recordings['/today'],
    }),
  },
})

function publishedDate(name: string, date: string, { now }: CallContext): string {
  if (!isCalendarDate(date)) throw new InvalidParameter(name, 'it is not a date of the calendar')
  const today = easternDate(now)
  if (date < FIRST_DATE || date > today)
    throw new InvalidParameter(name, `it is not between ${FIRST_DATE} and ${today}`)
  return date
}

/** The first frame or media file of the article, if the day's picture moves. */
function playerUrl({ media_type, basic_html }: Source): string | undefined {
  if (media_type === 'image' || typeof basic_html !== 'string') return undefined
  for (const [, double, single] of basic_html.matchAll(PLAYER)) {
    const src = htmlDecoded(double ?? single)?.trim() ?? ''
    const url = URL.canParse(src, ORIGIN) ? new URL(src, ORIGIN) : undefined
    if (src !== '' && (url?.protocol === 'https:' || url?.protocol === 'http:')) return url.href
  }
  return undefined
}

/**
 * HTML as text: a break is a space, other tags stand inside words and sentences. Null when nothing
 * is left.
 */
function plainText(html: unknown): string | null {
  if (typeof html !== 'string') return null
  const withoutTags = html.replace(/<\/?(?:br|p|div|li)\b[^<>]*>/gi, ' ').replace(/<[^<>]*>/g, '')
  return filledText(htmlDecoded(withoutTags)?.replace(/\s+/g, ' ').trim())
}
