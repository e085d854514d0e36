import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import encyclopedia from '../../src/upstreams/encyclopedia.ts'
import { addressOf, codeOf, dataOf, endpointAt, fits, waitOf } from '../support/upstream-call.ts'

const summary = endpointAt(encyclopedia, '/summary')
const recorded = summary.example.response as Record<string, unknown>
const pathOf = (title: string) =>
  addressOf(encyclopedia, '/summary', { title }).replace('https://en.wikipedia.org/api/rest_v1/page/summary/', '')

const isInvalidTitle = (error: unknown) => error instanceof InvalidParameter && error.parameter === 'title'

test('the title is a single segment of the path', () => {
  assert.equal(
    addressOf(encyclopedia, '/summary', { title: 'Earth' }),
    'https://en.wikipedia.org/api/rest_v1/page/summary/Earth',
  )
  assert.equal(pathOf('AC/DC'), 'AC%2FDC')
  assert.equal(pathOf('What?'), 'What%3F')
  assert.equal(pathOf('100% Pure'), '100%25_Pure')
  assert.equal(pathOf('Zürich'), 'Z%C3%BCrich')
})

test('a title is trimmed and its spaces are underscores', () => {
  assert.equal(pathOf('  Albert  Einstein '), 'Albert_Einstein')
  assert.equal(pathOf('Albert_Einstein_'), 'Albert_Einstein')
})

test('the case of the first letter does not matter, and the case of the other letters does', () => {
  assert.equal(pathOf('earth'), 'Earth')
  assert.equal(pathOf('iPhone'), 'IPhone')
  assert.equal(pathOf('éclair'), '%C3%89clair')
  assert.equal(pathOf('ß'), '%C3%9F')
})

test('characters that no title can have are refused before the call', () => {
  for (const title of ['', 'a#b', 'a<b', 'a>b', 'a[b', 'a]b', 'a|b', 'a{b', 'a}b']) {
    assert.ok(!fits(summary, { title }), title)
  }
})

test('a blank title is refused before the call', () => {
  for (const title of [' ', '_', ' _ ']) assert.throws(() => pathOf(title), isInvalidTitle)
})

test('a title with half of a surrogate pair is refused before the call', () => {
  assert.throws(() => pathOf('\ud800'), isInvalidTitle)
})

test('dot segments are refused before the call', () => {
  for (const title of ['.', '..', ' .. ']) assert.throws(() => pathOf(title), InvalidParameter)
})

test('a title may have 255 bytes, not 255 characters', () => {
  assert.equal(pathOf('A'.repeat(255)).length, 255)
  assert.throws(() => pathOf('ü'.repeat(128)), isInvalidTitle)
})

test('a disambiguation page is a success', () => {
  const body = { type: 'disambiguation', title: 'Mercury', extract: 'Mercury most commonly refers to:' }
  const data = dataOf(encyclopedia, '/summary', { body })
  assert.equal(data.type, 'disambiguation')
  assert.equal(data.extract, 'Mercury most commonly refers to:')
})

test('members that a page does not have are null', () => {
  const data = dataOf(encyclopedia, '/summary', { body: { type: 'standard', title: 'Xyz', extract: '' } })
  assert.deepEqual(data, {
    title: 'Xyz',
    description: null,
    extract: '',
    page_url: null,
    thumbnail_url: null,
    type: 'standard',
    page_id: null,
    wikidata_id: null,
    lang: null,
    updated_at: null,
    image_url: null,
    coordinates: null,
  })
})

test('the title is the canonical title after redirects', () => {
  const body = { ...recorded, title: 'United Kingdom' }
  assert.equal(dataOf(encyclopedia, '/summary', { body }, { title: 'UK' }).title, 'United Kingdom')
})

test('title and extract are plain, without HTML', () => {
  const body = { ...recorded, title: 'IPhone', displaytitle: '<i>iPhone</i>', extract: 'A & B', extract_html: '<p>A' }
  const data = dataOf(encyclopedia, '/summary', { body })
  assert.equal(data.title, 'IPhone')
  assert.equal(data.extract, 'A & B')
})

test('a thumbnail may be on any host', () => {
  const source = 'https://thumb.wikimedia.org/wikipedia/commons/thumb/a/aa/X.jpg/330px-X.jpg'
  const data = dataOf(encyclopedia, '/summary', { body: { ...recorded, thumbnail: { source } } })
  assert.equal(data.thumbnail_url, source)
})

test('the address of the page is the address for desktops', () => {
  const content_urls = { mobile: { page: 'https://en.m.wikipedia.org/wiki/Earth' }, desktop: { page: 'https://d/' } }
  assert.equal(dataOf(encyclopedia, '/summary', { body: { ...recorded, content_urls } }).page_url, 'https://d/')
})

test('if the answer lacks a coordinate, both are null', () => {
  const at = (coordinates: unknown) =>
    dataOf(encyclopedia, '/summary', { body: { ...recorded, coordinates } }).coordinates
  assert.deepEqual(at({ lat: 52.5, lon: 13.4, globe: 'earth' }), { lat: 52.5, lon: 13.4 })
  assert.equal(at({ lat: 52.5 }), null)
  assert.equal(at('52.5,13.4'), null)
})

test('an unknown title is UPSTREAM_NOT_FOUND, though its body says "Internal error"', () => {
  const body = { status: 404, type: 'Internal error' }
  assert.equal(codeOf(encyclopedia, '/summary', { status: 404, body }), 'UPSTREAM_NOT_FOUND')
})

test('an unknown title in the older form is UPSTREAM_NOT_FOUND', () => {
  const body = {
    type: 'https://mediawiki.org/wiki/HyperSwitch/errors/not_found',
    title: 'Not found.',
    method: 'get',
    detail: 'Page or revision not found.',
    uri: '/en.wikipedia.org/v1/page/summary/Xyz',
  }
  assert.equal(codeOf(encyclopedia, '/summary', { status: 404, body }), 'UPSTREAM_NOT_FOUND')
})

test('a 429 closes the cap for as long as the upstream requests', () => {
  assert.equal(waitOf(encyclopedia, '/summary', { status: 429, headers: { 'retry-after': '17' } }), 17_000)
})

test('an answer without a title is UPSTREAM_INVALID_RESPONSE', () => {
  for (const body of [{}, [], { extract: 'x' }, 'x', undefined]) {
    assert.equal(codeOf(encyclopedia, '/summary', { body }), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('at most three requests are under way at once', () => {
  assert.ok(encyclopedia.caps.concurrency <= 3)
})

test('a key is an OAuth token in the header', () => {
  assert.equal(encyclopedia.credential?.required, false)
  assert.equal(encyclopedia.credential?.format?.('token'), 'Bearer token')
})

test('the gateway follows the redirect of a title that stands for another page', () => {
  assert.equal(encyclopedia.redirectsMax, 2)
})

test('pictures without protocol get one', () => {
  const picture = { source: '//upload.wikimedia.org/a.png' }
  const body = { ...recorded, thumbnail: picture, originalimage: picture }
  const { thumbnail_url, image_url } = dataOf(encyclopedia, '/summary', { body })
  assert.deepEqual([thumbnail_url, image_url], Array(2).fill('https://upload.wikimedia.org/a.png'))
})

test('a problem with status 200 is UPSTREAM_ERROR, and not an article with its title', () => {
  for (const type of ['https://mediawiki.org/wiki/HyperSwitch/errors/internal_error', 'about:blank']) {
    assert.equal(codeOf(encyclopedia, '/summary', { body: { type, title: 'Internal error' } }), 'UPSTREAM_ERROR')
  }
})
