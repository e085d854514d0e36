import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import spacePicture from '../../src/upstreams/space-picture.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits } from '../support/upstream-call.ts'

const today = endpointAt(spacePicture, '/today')
const recorded = today.example.response as Record<string, unknown>
const at = (date: string | undefined, now = '2026-10-15T12:00:00Z') =>
  addressOf(spacePicture, '/today', date === undefined ? {} : { date }, now)
const dataWith = (changes: Record<string, unknown>) =>
  dataOf(spacePicture, '/today', { body: { ...recorded, ...changes } })

const isInvalidDate = (error: unknown) => error instanceof InvalidParameter && error.parameter === 'date'

test('a date is a segment of the path, YYMMDD', () => {
  assert.equal(at('2026-09-16'), 'https://science.nasa.gov/wp-json/wp/v2/apod-basic/260916')
})

test('years of two digits are 19xx and 20xx', () => {
  assert.match(at('1995-06-16'), /\/950616$/)
  assert.match(at('2000-01-01'), /\/000101$/)
})

test('without a date only the newest picture of the list is requested', () => {
  assert.equal(at(undefined), 'https://science.nasa.gov/wp-json/wp/v2/apod-basic?per_page=1')
})

test('the list gives its first item', () => {
  const body = [recorded, { ...recorded, date: '2026-09-15' }]
  assert.deepEqual(dataOf(spacePicture, '/today', { body }, {}), today.example.data)
})

test('an empty list is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(spacePicture, '/today', { body: [] }, {}), 'UPSTREAM_INVALID_RESPONSE')
})

test('the picture of another date than the requested date is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(codeOf(spacePicture, '/today', { body: recorded }, { date: '2026-09-15' }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(codeOf(spacePicture, '/today', { body: { title: 'x' } }, {}), 'UPSTREAM_INVALID_RESPONSE')
})

test('dates before the first picture and after today are refused before the call', () => {
  assert.throws(() => at('1995-06-15'), isInvalidDate)
  assert.throws(() => at('2026-10-16'), isInvalidDate)
})

test('today is today in US Eastern time, in summer and winter', () => {
  assert.throws(() => at('2026-07-02', '2026-07-02T03:59:00Z'), isInvalidDate)
  assert.match(at('2026-07-02', '2026-07-02T04:00:00Z'), /260702$/)
  assert.throws(() => at('2026-12-02', '2026-12-02T04:59:00Z'), isInvalidDate)
  assert.match(at('2026-12-02', '2026-12-02T05:00:00Z'), /261202$/)
})

test('days that the calendar does not have are refused before the call', () => {
  for (const date of ['2026-02-29', '2025-13-01', '2025-04-31', '2025-00-10']) {
    assert.throws(() => at(date), isInvalidDate, date)
  }
  assert.match(at('2024-02-29'), /240229$/)
  for (const date of ['260916', '2026-9-16', 'today', '2026-09-16T00:00']) assert.ok(!fits(today, { date }), date)
})

test('no picture for a date is UPSTREAM_NOT_FOUND', () => {
  const body = { code: 'apod_basic_not_found', message: 'APOD not found.', data: { status: 404 } }
  assert.equal(codeOf(spacePicture, '/today', { status: 404, body }), 'UPSTREAM_NOT_FOUND')
})

test('a 404 that does not mention a picture is UPSTREAM_ERROR, because the API may have moved', () => {
  const body = { code: 'rest_no_route', message: 'No route was found', data: { status: 404 } }
  assert.equal(codeOf(spacePicture, '/today', { status: 404, body }), 'UPSTREAM_ERROR')
  assert.equal(codeOf(spacePicture, '/today', { status: 404 }), 'UPSTREAM_ERROR')
})

test('trouble in plain text, 503, is UPSTREAM_ERROR', () => {
  assert.equal(codeOf(spacePicture, '/today', { status: 503 }), 'UPSTREAM_ERROR')
})

test('failures of the older API are judged by their status', () => {
  const outOfRange = { code: 400, msg: 'Date must be between Jun 16, 1995 and Apr 27, 2022.', service_version: 'v1' }
  const limit = { error: { code: 'OVER_RATE_LIMIT', message: 'You have exceeded your rate limit.' } }
  const noKey = { error: { code: 'API_KEY_MISSING', message: 'No api_key was supplied.' } }
  const internal = { code: 500, msg: 'Internal Service Error', service_version: 'v1' }
  assert.equal(codeOf(spacePicture, '/today', { status: 400, body: outOfRange }), 'UPSTREAM_ERROR')
  assert.equal(codeOf(spacePicture, '/today', { status: 429, body: limit }), 'UPSTREAM_RATE_LIMITED')
  assert.equal(codeOf(spacePicture, '/today', { status: 403, body: noKey }), 'UPSTREAM_ERROR')
  assert.equal(codeOf(spacePicture, '/today', { status: 500, body: internal }), 'UPSTREAM_ERROR')
})

test('url is the address of the media file, and page_url of the article', () => {
  const data = dataWith({ hdurl: 'https://assets/still.jpg', url: 'https://page/', permalink: 'https://page/' })
  assert.equal(data.url, 'https://assets/still.jpg')
  assert.equal(data.page_url, 'https://page/')
})

test('the url of an entry without a file is its page', () => {
  assert.equal(dataWith({ hdurl: undefined, url: 'https://page/', media_type: 'video' }).url, 'https://page/')
  assert.equal(dataWith({ hdurl: '', url: 'https://page/' }).url, 'https://page/')
  assert.equal(dataWith({ hdurl: undefined, url: undefined }).url, null)
})

test('entities of a title are decoded', () => {
  assert.equal(dataWith({ title: 'M81 &amp; M82' }).title, 'M81 & M82')
})

test('the explanation is text without tags and without its heading', () => {
  const explanation =
    "<strong>Explanation: </strong>A <a href='x'>galaxy</a>, seen<br/>from afar. S&amp;S <strong>Tomorrow's picture: </strong>open space"
  assert.equal(dataWith({ explanation }).explanation, 'A galaxy, seen from afar. S&S')
})

test('an entity that decodes to a bracket is no tag', () => {
  assert.equal(dataWith({ explanation: 'a &lt;b&gt; c' }).explanation, 'a <b> c')
})

test('tags inside a credit line leave no space behind', () => {
  assert.equal(dataWith({ copyright: 'A; <em>Processing</em>: B' }).copyright, 'A; Processing: B')
})

test('a copyright that is absent, blank or only tags is null', () => {
  for (const copyright of [undefined, null, '', ' \n', '<br>']) assert.equal(dataWith({ copyright }).copyright, null)
})

test('all members are present even if the upstream has only a date', () => {
  assert.deepEqual(dataOf(spacePicture, '/today', { body: [{ date: '2026-10-15' }] }, {}), {
    date: '2026-10-15',
    title: null,
    media_type: null,
    url: null,
    page_url: null,
    copyright: null,
    explanation: null,
    alt: null,
  })
})

test('a text full of opening brackets is read in linear time', () => {
  const start = performance.now()
  dataWith({ explanation: '<'.repeat(1_000_000) })
  // In quadratic time it takes a quarter of an hour.
  assert.ok(performance.now() - start < 30_000)
})

test('parameters by which WordPress changes the form of the answer are reserved', () => {
  for (const name of ['_fields', '_envelope', '_method', 'per_page']) {
    assert.ok(spacePicture.reservedParameters?.includes(name), name)
  }
})

test('the picture of today is stored for minutes, and pictures of past days for a week', () => {
  const seconds = today.cache?.seconds
  assert.ok(typeof seconds === 'function')
  const now = Date.parse('2026-09-17T03:00:00Z') // 23:00 of the 16th in New York
  const of = (date?: string) => seconds(date === undefined ? {} : { date }, {}, { now })
  assert.deepEqual([of(), of('2026-09-16'), of('2026-09-15')], [900, 900, 604_800])
})

test('the url of a video or iframe is its player in the article', () => {
  const still = { hdurl: 'https://assets/still.jpg', url: 'https://page/' }
  const url = (media_type: unknown, basic_html: unknown) => dataWith({ ...still, media_type, basic_html }).url
  const iframe =
    '<p>x</p><iframe width="9" src="https://www.youtube.com/embed/abc?rel=0&amp;start=1" allowfullscreen></iframe>'
  assert.equal(url('iframe', iframe), 'https://www.youtube.com/embed/abc?rel=0&start=1')
  assert.equal(url('video', iframe), 'https://www.youtube.com/embed/abc?rel=0&start=1')
  assert.equal(
    url('video', '<video controls><source type="video/mp4" src=\'https://assets/a.mp4\'></video>'),
    'https://assets/a.mp4',
  )
  assert.equal(url('video', '<VIDEO SRC = "/b.mp4">'), 'https://science.nasa.gov/b.mp4')
  assert.equal(url('video', '<iframe src="//player.vimeo.com/video/1">'), 'https://player.vimeo.com/video/1')
  assert.equal(url('image', iframe), 'https://assets/still.jpg')
  for (const html of [
    '<iframe src="javascript:alert(1)">',
    '<iframe src="">',
    '<iframe data-src="https://x/">',
    '<p>',
    7,
    undefined,
  ]) {
    assert.equal(url('video', html), 'https://assets/still.jpg', String(html))
  }
})

test('an article of any length is looked through in one pass', () => {
  for (const part of ['<iframe ', '<iframe src', ' src = ', '<iframe src="']) {
    dataWith({ media_type: 'video', basic_html: `<iframe ${part.repeat(200_000)}` })
  }
})

test("tomorrow's picture is not part of the explanation", () => {
  const explained = (explanation: string) => dataWith({ explanation }).explanation
  assert.equal(explained('A nebula. <b>Tomorrow\'s picture: </b><a href="x">open space</a>'), 'A nebula.')
  assert.equal(explained('A nebula. Tomorrow’s picture: open space'), 'A nebula.')
  assert.equal(explained('A nebula. Tomorrow&rsquo;s picture : open space'), 'A nebula.')
  assert.equal(explained('A nebula. Tomorrows picture: open space'), 'A nebula.')
  assert.equal(explained("Tomorrow's picture: open space"), null)
  assert.equal(explained('Tomorrow the moon is full.'), 'Tomorrow the moon is full.')
})

test('an address without protocol or host gets both, and the text for people who do not see the picture is decoded', () => {
  assert.equal(dataWith({ hdurl: '//a.example/b.png' }).url, 'https://a.example/b.png')
  assert.equal(dataWith({ hdurl: '/b.png' }).url, 'https://science.nasa.gov/b.png')
  assert.equal(dataWith({ alt: 'Sun &amp; moon' }).alt, 'Sun & moon')
})
