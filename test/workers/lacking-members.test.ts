import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { KnownMembers } from '../../src/health/health-cache.ts'
import { membersSeen } from '../../workers/upstream/lacking-members.ts'
import { recordedParameters } from '../../workers/upstream/recorded-call.ts'
import { endpointAt } from '../support/upstream-call.ts'

const upstreams = await loadUpstreams()
const upstreamOf = (slug: string): Upstream => upstreams.get(slug) ?? assert.fail(slug)

/** The members that the recorded answer of an endpoint lacks after a change. */
function seenIn(
  slug: string,
  path: string,
  change: (data: never) => void,
  { known, given = {}, isProbe = false }: { known?: KnownMembers; given?: object; isProbe?: boolean } = {},
) {
  const upstream = upstreamOf(slug)
  const endpoint = endpointAt(upstream, path)
  const parameters = { ...recordedParameters(endpoint), ...given }
  const data = structuredClone(endpoint.example.data) as Record<string, unknown>
  change(data as never)
  return membersSeen({ upstream, path, endpoint, parameters, data }, { known, isProbe, now: 10 * 86_400_000 })
}
const lacks = (...call: Parameters<typeof seenIn>) => seenIn(...call).seen?.lacks ?? []

test('a recorded answer lacks nothing, whatever the upstream', () => {
  for (const [slug, { endpoints }] of upstreams) {
    for (const path of Object.keys(endpoints)) {
      assert.deepEqual(
        seenIn(slug, path, () => undefined),
        { seen: undefined, isLacking: false },
        slug + path,
      )
    }
  }
})

test('an answer lacks a member that is null, and a member that is absent', () => {
  assert.deepEqual(
    lacks('weather', '/current', (data: { temperature_c: null }) => (data.temperature_c = null)),
    ['temperature_c'],
  )
  assert.deepEqual(
    lacks('weather', '/current', (data: { temperature_c?: number }) => delete data.temperature_c),
    ['temperature_c'],
  )
})

test('an answer lacks a member of a list if no item has it, and not if some items have it', () => {
  type Data = { upcoming: { name: string | null }[] }
  const all = (data: Data) => data.upcoming.map((holiday) => Object.assign(holiday, { name: null }))
  assert.deepEqual(lacks('public-holidays', '/next', all), ['upcoming[].name'])
  assert.deepEqual(
    lacks('public-holidays', '/next', (data: Data) => Object.assign(data.upcoming[0] ?? {}, { name: null })),
    [],
  )
  assert.deepEqual(
    lacks('public-holidays', '/next', (data: Data) => data.upcoming.splice(0), { given: { countryCode: 'XK' } }),
    [],
  )
})

test('an answer to the recorded call lacks items if a list is empty, and an answer to another call does not', () => {
  type Data = { results: object[]; upcoming: { types: string[] }[]; meanings: { definitions: object[] }[] }
  const emptied = (given?: Record<string, unknown>) =>
    lacks('geocoding', '/search', (data: Data) => data.results.splice(0), given === undefined ? {} : { given })
  assert.deepEqual(emptied(), ['results[]'])
  assert.deepEqual(emptied({ q: 'nowhere' }), [])
  assert.deepEqual(emptied({ limit: '1' }), ['results[]'], 'values are compared as they are written')
  assert.deepEqual(
    lacks('mock-data', '/comments', (data: { comments: object[] }) => data.comments.splice(0)),
    ['comments[]'],
  )
  const withoutTypes = (data: Data) => data.upcoming.map(({ types }) => types.splice(0))
  assert.deepEqual(lacks('public-holidays', '/next', withoutTypes), ['upcoming[].types[]'])
  const withoutDefinitions = (data: Data) => data.meanings.map(({ definitions }) => definitions.splice(0))
  assert.deepEqual(lacks('dictionary', '/define', withoutDefinitions), ['meanings[].definitions[]'])
  assert.deepEqual(lacks('dictionary', '/define', withoutDefinitions, { given: { word: 'other' } }), [])
})

test('a list that is sometimes empty for the recorded call itself is not reported, such as games in a quiet week or bars before trading', () => {
  const empty = (name: string) => (data: Record<string, object[]>) => data[name]?.splice(0)
  assert.deepEqual(lacks('sports-scores', '/nfl', empty('games')), [])
  assert.deepEqual(lacks('market-quotes', '/quote', empty('history')), [])
  for (const name of ['related_topics', 'results'])
    assert.deepEqual(lacks('instant-answers', '/search', empty(name)), [])
})

test('an answer of an own API lacks nothing, because it has no recording', () => {
  const upstream = { ...upstreamOf('weather'), own: { digest: 'd', mayBePrivate: false } }
  const endpoint = { ...endpointAt(upstream, '/current') }
  const answered = { upstream, path: '/current', endpoint, parameters: {}, data: {} }
  assert.deepEqual(membersSeen(answered, { known: undefined, isProbe: false, now: 0 }), {
    ...{ seen: undefined, isLacking: false },
  })
})

test('an answer does not lack a list that has items, whatever the call', () => {
  const known = { '/search results[]': { good: 0 } }
  assert.deepEqual(seenIn('geocoding', '/search', () => undefined, { known, given: { q: 'x' } }).seen?.has, [
    'results[]',
  ])
})

test('an answer can lack a member of a member', () => {
  type Data = { address: Record<string, unknown> }
  assert.deepEqual(
    lacks('mock-data', '/users', (data: Data) => (data.address.street = null)),
    ['address.street'],
  )
})

test('a member is not reported if it is null in a recorded answer of the API, or if the file of the API says that it may be null', () => {
  type Data = Record<string, null>
  assert.deepEqual(
    lacks('countries', '/info', (data: Data) => (data.capital = null)),
    [],
  )
  assert.deepEqual(
    lacks('code-host-user', '/profile', (data: Data) => (data.company = null)),
    [],
  )
  assert.deepEqual(
    lacks('code-host-user', '/profile', (data: Data) => (data.login = null)),
    ['login'],
  )
  const without =
    (...names: string[]) =>
    (data: Data) =>
      void Object.assign(data, Object.fromEntries(names.map((name) => [name, null])))
  const quoteOfWeek = without('previous_close', 'change', 'change_percent')
  assert.deepEqual(lacks('market-quotes', '/quote', quoteOfWeek), [])
  const smallCoin = without('volume_24h_usd', 'price_change_percentage_24h', 'ath_usd', 'ath_date', 'market_cap_rank')
  assert.deepEqual(lacks('crypto-prices', '/coin', smallCoin), [])
  type Results = { results: object[]; markets: object[] }
  const postcode = ({ results }: Results) =>
    results.map((result) => Object.assign(result, { osm_type: null, osm_id: null }))
  assert.deepEqual(lacks('geocoding', '/search', postcode), [])
  const newMarket = ({ markets }: Results) =>
    markets.map((market) => Object.assign(market, { volume_24h: null, image_url: null }))
  assert.deepEqual(lacks('prediction-markets', '/markets', newMarket), [])
})

test('the history of a member decides whether its lack is reported', () => {
  const lacking = (data: { temperature_c: null }) => (data.temperature_c = null)
  const key = '/current temperature_c'
  const now = 10 * 86_400_000
  const reported = (member: KnownMembers[string]) =>
    seenIn('weather', '/current', lacking, { known: { [key]: member } })
  assert.deepEqual(reported({ ordinary: now - 1 }), { seen: undefined, isLacking: false })
  assert.deepEqual(reported({ ordinary: now - 86_400_001 }).seen?.lacks, ['temperature_c'])
  assert.deepEqual(reported({ since: 1, good: 0 }), { seen: undefined, isLacking: true })
  assert.deepEqual(reported({ since: 1, good: 1 }).seen?.lacks, ['temperature_c'])
  const counted = { good: 0, count: 5, probedAt: now - 59_999 }
  assert.deepEqual(reported(counted), { seen: undefined, isLacking: true })
  const ofProbe = seenIn('weather', '/current', lacking, { known: { [key]: counted }, isProbe: true })
  assert.deepEqual(ofProbe.seen?.lacks, ['temperature_c'], 'a probe decides')
  for (const more of [{ count: 4 }, { probedAt: now - 60_000 }])
    assert.deepEqual(reported({ ...counted, ...more }).seen?.lacks, ['temperature_c'])
  const has = (member: KnownMembers[string]) =>
    seenIn('weather', '/current', () => undefined, { known: { [key]: member } }).seen?.has
  assert.deepEqual(has({ since: 1, good: 1 }), ['temperature_c'])
  assert.deepEqual(has({ good: 0 }), ['temperature_c'])
  assert.equal(has({ ordinary: now }), undefined)
})
